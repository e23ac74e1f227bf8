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
	e := &expressions{fields: fields}
	e.look("spec", "spec", object["spec"])
	return e.found
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

// expressions are what is wrong with those of one object.
type expressions struct {
	fields []string
	sum    re2.Sum
	found  []schema.Problem
}

// look looks at the value of the field name, until the object has too many.
func (e *expressions) look(path, name string, value any) {
	switch value := value.(type) {
	case []any:
		for i, one := range value {
			e.look(fmt.Sprintf("%s[%d]", path, i), name, one)
		}
	case map[string]any:
		for _, field := range slices.Sorted(maps.Keys(value)) {
			at := path + "." + field
			text, is := value[field].(string)
			is = is && isExpression(e.fields, name, field)
			switch {
			case e.sum.Exceeded():
				return
			case !is:
				e.look(at, field, value[field])
			case text != "*": // Istio's way of saying that a value only has to be there
				if err := e.sum.Check(text); err != nil {
					e.found = append(e.found, schema.Problem{Code: schema.Invalid, Field: at, Message: err.Error()})
				}
			}
		}
	}
}
