package kind

import (
	"fmt"
	"maps"
	"slices"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/internal/re2"
)

// Expressions reports the regular expressions of an object that Envoy would refuse, and
// a whole resource with them. Stored objects must pass it, too: it belongs to the schema
// (schema.Load).
func Expressions(kind federation.Kind, object map[string]any) []schema.Problem {
	fields := Of(kind).expressions
	if len(fields) == 0 {
		return nil
	}
	return expressions(nil, fields, "spec", "spec", object["spec"])
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
			switch is = is && (slices.Contains(fields, field) || slices.Contains(fields, name+"."+field)); {
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
