package schema

import (
	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
)

// rules are the CEL rules of a schema, compiled as the library compiles them. Its validator
// copies the schemas of all members of an object each time that a rule reads one of them; here
// rules read members, which are made once.
//
// They only tell whether all rules hold. Which does not, and whether that is forgiven because
// it was so before, the library says.
type rules struct {
	schema     common.Schema // of the value, as rules read it
	programs   []celgo.Program
	oldSelf    bool // one compares with the value before
	properties map[string]*rules
	additional *rules // of each member of a map
	items      *rules
}

// hold reports whether the library would find that an object breaks no rule.
func (r *rules) hold(object, old map[string]any) bool {
	budget := int64(celconfig.RuntimeCELCostBudget)
	return r != nil && r.holdFor(object, old != nil, &budget)
}

func (r *rules) holdFor(value any, changes bool, budget *int64) bool {
	if r == nil || value == nil {
		return true
	}
	if !r.areTrue(value, changes, budget) {
		return false
	}
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			if !r.additional.holdFor(member, changes, budget) || !r.properties[name].holdFor(member, changes, budget) {
				return false
			}
		}
	case []any:
		for _, item := range value {
			if !r.items.holdFor(item, changes, budget) {
				return false
			}
		}
	}
	return true
}

// areTrue evaluates the rules of the value itself.
func (r *rules) areTrue(value any, changes bool, budget *int64) bool {
	if changes && r.oldSelf {
		return false // the library knows which values belong together
	}
	if len(r.programs) == 0 {
		return true
	}
	self := self{common.UnstructuredToVal(value, r.schema)}
	for _, program := range r.programs {
		result, details, err := program.Eval(self)
		if err != nil || result != types.True || details == nil || details.ActualCost() == nil {
			return false
		}
		*budget -= int64(min(*details.ActualCost(), celconfig.RuntimeCELCostBudget))
		if *budget <= 0 {
			return false
		}
	}
	return true
}

// self is what rules know by name.
type self struct{ value ref.Val }

// ResolveName is part of cel.Activation.
func (s self) ResolveName(name string) (any, bool) { return s.value, name == cel.ScopedVarName }

// Parent is part of cel.Activation.
func (s self) Parent() celgo.Activation { return nil }
