package schema

import (
	"fmt"
	"maps"
	"slices"

	"isthmus.dev/isthmus/internal/re2"
)

// regexProblems finds the regular expressions of a VirtualService that Envoy
// would refuse, and a whole resource with them.
func (v *version) regexProblems(object map[string]any) []Problem {
	if v.Group != "networking.istio.io" || v.Kind != "VirtualService" {
		return nil
	}
	return expressions(nil, "spec", object["spec"])
}

// expressions looks at every field regex, and at uriRegexRewrite.match.
func expressions(found []Problem, path string, value any) []Problem {
	switch value := value.(type) {
	case []any:
		for i, one := range value {
			found = expressions(found, fmt.Sprintf("%s[%d]", path, i), one)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			at := path + "." + name
			text, ok := value[name].(string)
			switch {
			case !ok && name == "uriRegexRewrite":
				rewrite, _ := value[name].(map[string]any)
				if match, ok := rewrite["match"].(string); ok {
					found = checkExpression(found, at+".match", match)
				}
			case !ok:
				found = expressions(found, at, value[name])
			case name == "regex" && text != "*": // Istio's way of saying that a value only has to be there
				found = checkExpression(found, at, text)
			}
		}
	}
	return found
}

func checkExpression(found []Problem, path, text string) []Problem {
	if err := re2.Check(text); err != nil {
		found = append(found, Problem{Invalid, path, cut(err.Error())})
	}
	return found
}
