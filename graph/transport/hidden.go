package transport

import (
	"github.com/99designs/gqlgen/graphql/executor"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

// hideSchema has validation suggest no names. Introspection is off unless its extension
// is used.
func hideSchema(exec *executor.Executor) {
	exec.SetDisableSuggestion(true) // of fields; the executor leaves the other rules as they are
	exec.SetDefaultRulesFn(func() *rules.Rules {
		all := rules.NewDefaultRules()
		all.ReplaceRule(rules.KnownArgumentNamesRule.Name, rules.KnownArgumentNamesRuleWithoutSuggestions.RuleFunc)
		all.ReplaceRule(rules.KnownTypeNamesRule.Name, rules.KnownTypeNamesRuleWithoutSuggestions.RuleFunc)
		all.ReplaceRule(rules.ValuesOfCorrectTypeRule.Name, rules.ValuesOfCorrectTypeRuleWithoutSuggestions.RuleFunc)
		return all
	})
}
