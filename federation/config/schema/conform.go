package schema

import (
	"sync"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// level is one level of a schema: what it says about a value apart from the value's
// own members, which have levels of their own. The library makes its validators
// again for each member of each object, and copies the schema of each member that
// an object could have; here both are made once, when they are first needed.
//
// It only tells whether a value conforms. What is wrong with one that does not,
// and whether that is forgiven because it was so before, the library says.
type level struct {
	here       *validate.SchemaValidator
	fast       *fastValidator // accepts most values; nil: the library judges all
	preserves  bool           // members that are not properties stay
	properties map[string]levelOf
	additional levelOf // of the members that are not properties; nil: they may be anything
	items      levelOf
	keys       []string // of the items of a list; nil: they have none
}

// levelOf gives a level, which it makes when it is first asked.
type levelOf func() *level

func levelFor(s *spec.Schema) levelOf {
	return sync.OnceValue(func() *level { return newLevel(*s) })
}

// newLevel leaves to the library, whole, what a structural schema cannot have.
func newLevel(here spec.Schema) *level {
	l := &level{keys: itemKeys(&here)}
	l.preserves, _ = here.Extensions["x-kubernetes-preserve-unknown-fields"].(bool)
	if a := here.AdditionalProperties; a == nil || a.Schema != nil {
		l.properties = make(map[string]levelOf, len(here.Properties))
		for name, property := range here.Properties {
			l.properties[name] = levelFor(&property)
		}
		if a != nil {
			l.additional = levelFor(a.Schema)
		}
		here.Properties, here.AdditionalProperties = nil, nil
	}
	if i := here.Items; i != nil && i.Schema != nil && here.AdditionalItems == nil {
		l.items = levelFor(i.Schema)
		here.Items = nil
	}
	l.fast = newFastValidator(here)
	l.here = validate.NewSchemaValidator(&here, nil, "", strfmt.Default)
	return l
}

// accepts reports whether the library would find nothing wrong with a value apart from its
// members.
func (l *level) accepts(value any) bool {
	return l.fast != nil && l.fast.accepts(value) || l.here.Validate(value).IsValid()
}

// conforms reports whether the library would find nothing wrong with a value.
func (l *level) conforms(value any) bool {
	if !l.accepts(value) {
		return false
	}
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			if at := l.member(name); at != nil && !at().conforms(member) {
				return false
			}
		}
	case []any:
		for _, item := range value {
			if l.items != nil && !l.items().conforms(item) {
				return false
			}
		}
	}
	return true
}

// member is the level of a member; nil: nothing is known of it.
func (l *level) member(name string) levelOf {
	if at, known := l.properties[name]; known {
		return at
	}
	return l.additional
}

// isPlain reports whether a value conforms, and reading it as Kubernetes does would leave it
// as it is: it has no nulls, no members that the schema does not know, and no items that have
// the same key.
func (l *level) isPlain(value any) bool {
	if value == nil || !l.accepts(value) {
		return false
	}
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			if at := l.member(name); at == nil || l.preserves || !at().isPlain(member) {
				return false
			}
		}
	case []any:
		if !l.hasPlainKeys(value) {
			return false
		}
		for _, item := range value {
			if l.items == nil || !l.items().isPlain(item) {
				return false
			}
		}
	}
	return true
}

// isPlainObject is isPlain for a whole object, whose metadata only has to conform.
func (l *level) isPlainObject(object map[string]any) bool {
	if !l.accepts(object) || l.preserves {
		return false
	}
	for name, member := range object {
		at := l.member(name)
		switch name {
		case "apiVersion", "kind", "metadata":
			if at != nil && !at().conforms(member) {
				return false
			}
		default:
			if at == nil || !at().isPlain(member) {
				return false
			}
		}
	}
	return true
}
