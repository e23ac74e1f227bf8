package schema

import (
	"reflect"
	"slices"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// fastValidator accepts what certainly conforms to one level of a schema, without the library, whose
// validators make a result for each value. What it does not accept, the library judges.
type fastValidator struct {
	of       string // a type
	enum     []any  // nil: any value
	min, max *float64
	shape    presence // nil: any members
}

// newQuick returns nil for a schema that says more than a fastValidator knows.
func newFastValidator(s spec.Schema) *fastValidator {
	if len(s.Type) != 1 {
		return nil
	}
	shape, plain := presenceOf(s)
	if !plain {
		return nil
	}
	return &fastValidator{of: s.Type[0], enum: s.Enum, min: s.Minimum, max: s.Maximum, shape: shape}
}

func (q *fastValidator) accepts(value any) bool {
	switch value := value.(type) {
	case string:
		return q.of == "string" && (q.enum == nil || slices.Contains(q.enum, any(value)))
	case bool:
		return q.of == "boolean" && q.enum == nil
	case int64:
		return q.of == "integer" && q.enum == nil && q.within(value)
	case []any:
		return q.of == "array" && q.enum == nil
	case map[string]any:
		return q.of == "object" && q.enum == nil && (q.shape == nil || q.shape(value))
	}
	return false
}

// within leaves what no int32 can be to the library, which knows the formats.
func (q *fastValidator) within(n int64) bool {
	return n >= 0 && n < 1<<31 && (q.min == nil || float64(n) >= *q.min) && (q.max == nil || float64(n) <= *q.max)
}

// presence is a condition on which members an object has.
type presence func(map[string]any) bool

// presenceOf is the condition of a schema; nil: there is none. It reports false for a schema
// that says more than a type, bounds, and which members there must be.
func presenceOf(s spec.Schema) (presence, bool) {
	var all []presence
	if names := s.Required; len(names) > 0 {
		all = append(all, func(o map[string]any) bool {
			return !slices.ContainsFunc(names, func(name string) bool { _, has := o[name]; return !has })
		})
	}
	plain := true
	add := func(list []spec.Schema, holds func(count, of int) bool) {
		alternatives, known := presences(list)
		plain = plain && known
		if len(alternatives) > 0 {
			all = append(all, func(o map[string]any) bool { return holds(count(alternatives, o), len(alternatives)) })
		}
	}
	add(s.AllOf, func(count, of int) bool { return count == of })
	add(s.AnyOf, func(count, _ int) bool { return count > 0 })
	add(s.OneOf, func(count, _ int) bool { return count == 1 })
	if s.Not != nil {
		add([]spec.Schema{*s.Not}, func(count, _ int) bool { return count == 0 })
	}
	if !plain || !saysNoMore(s) {
		return nil, false
	}
	if len(all) == 0 {
		return nil, true
	}
	return func(o map[string]any) bool { return count(all, o) == len(all) }, true
}

// presences are the conditions of schemas that say nothing but which members there must be.
func presences(list []spec.Schema) (all []presence, plain bool) {
	for _, s := range list {
		p, plain := presenceOf(s)
		if !plain || p == nil || len(s.Type) > 0 || s.Enum != nil || s.Minimum != nil || s.Maximum != nil || s.Format != "" || s.Nullable {
			return nil, false
		}
		all = append(all, p)
	}
	return all, true
}

func count(all []presence, o map[string]any) int {
	n := 0
	for _, p := range all {
		if p(o) {
			n++
		}
	}
	return n
}

// saysNoMore reports whether a schema has nothing but what a fastValidator looks at and what does not
// matter to validation.
func saysNoMore(s spec.Schema) bool {
	s.Type, s.Enum, s.Minimum = nil, nil, nil
	s.Maximum, s.Format, s.Nullable = nil, "", false
	s.Required, s.AllOf, s.AnyOf = nil, nil, nil
	s.OneOf, s.Not = nil, nil
	s.Description, s.Title, s.Default = "", "", nil
	s.Example, s.ExternalDocs, s.Extensions = nil, nil, nil
	return reflect.ValueOf(s).IsZero()
}
