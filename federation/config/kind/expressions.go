package kind

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/internal/re2"
)

// Expressions reports the regular expressions of an object that Envoy would refuse, and
// a whole resource with them. Stored objects must pass it, too: it belongs to the schema
// (schema.Load).
func Expressions(kind federation.Kind, object map[string]any) []schema.Problem {
	fields := Of(kind).expressions
	if len(fields) == 0 || !hasExpression(fields, "spec", object["spec"]) {
		return nil
	}
	return expressions(nil, fields, "spec", "spec", object["spec"])
}

// hasExpression reports whether the value of the field name has an expression. Most have none.
func hasExpression(fields []string, name string, value any) bool {
	switch value := value.(type) {
	case []any:
		return slices.ContainsFunc(value, func(one any) bool { return hasExpression(fields, name, one) })
	case map[string]any:
		for field, inner := range value {
			if _, is := inner.(string); is && isExpression(fields, name, field) || hasExpression(fields, field, inner) {
				return true
			}
		}
	}
	return false
}

// isExpression reports whether a field of the field name is an expression if it is a text.
func isExpression(fields []string, name, field string) bool {
	return slices.ContainsFunc(fields, func(f string) bool {
		outer, inner, both := strings.Cut(f, ".")
		return f == field || both && outer == name && inner == field
	})
}

// expressions looks at the value of the field name.
func expressions(found []schema.Problem, fields []string, path, name string, value any) []schema.Problem {
	switch value := value.(type) {
	case []any:
		for i, one := range value {
			found = expressions(found, fields, fmt.Sprintf("%s[%d]", path, i), name, one)
		}
	case map[string]any:
		for _, field := range slices.Sorted(maps.Keys(value)) {
			at := path + "." + field
			text, is := value[field].(string)
			is = is && isExpression(fields, name, field)
			switch {
			case !is:
				found = expressions(found, fields, at, field, value[field])
			case text != "*": // Istio's way of saying that a value only has to be there
				if err := re2.Check(text); err != nil {
					found = append(found, schema.Problem{Code: schema.Invalid, Field: at, Message: err.Error()})
				}
			}
		}
	}
	return found
}
