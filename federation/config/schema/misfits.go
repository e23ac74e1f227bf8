package schema

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// misfits are the values of an object that do not conform to their level of the schema. The library compares each
// problem with all others: an object with more misfits than are listed is not shown to it.
type misfits struct {
	first []misfit // as many as are listed
	total int
}

type misfit struct {
	at    string
	of    *level
	value any
}

// misfitsOf finds them. Old is the stored object or nil; what it has in the same place is forgiven.
func misfitsOf(whole *level, object, old map[string]any) *misfits {
	found := &misfits{}
	found.look(misfit{"", whole, object}, oldOrNil(old))
	return found
}

func (m *misfits) look(in misfit, before any) {
	if !in.of.accepts(in.value) && (before == nil || !reflect.DeepEqual(in.value, before)) {
		m.total++
		if len(m.first) < maxListed-1 {
			m.first = append(m.first, in)
		}
	}
	switch value := in.value.(type) {
	case map[string]any:
		earlier, _ := before.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(value)) {
			at := name
			if in.at != "" {
				at = in.at + "." + name
			}
			if below := in.of.member(name); below != nil {
				m.look(misfit{at, below(), value[name]}, earlier[name])
			}
		}
	case []any:
		earlier, _ := before.([]any)
		for i, item := range value {
			var was any
			if i < len(earlier) {
				was = earlier[i]
			}
			if in.of.items != nil {
				m.look(misfit{fmt.Sprintf("%s[%d]", in.at, i), in.of.items(), item}, was)
			}
		}
	}
}

// problems are what the library says about the first ones, each by itself, and one for those that are not listed.
func (m *misfits) problems() []Problem {
	var errs field.ErrorList
	for _, one := range m.first {
		errs = append(errs, validation.ValidateCustomResource(nil, one.value, placed{one})...)
	}
	problems := problemsOf(errs)
	more := m.total - len(m.first)
	if cutOff := len(problems) - (maxListed - 1); cutOff > 0 {
		problems, more = problems[:maxListed-1], more+cutOff
	}
	return append(problems, notListed(more))
}

// placed validates a value apart from its members, and names it by its place.
type placed struct{ misfit }

func (p placed) Validate(value any, _ ...validation.ValidationOption) *validate.Result {
	return validate.NewSchemaValidator(p.of.here.Schema, nil, p.at, strfmt.Default).Validate(value)
}
