package schema

import (
	"maps"
	"slices"

	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"isthmus.dev/isthmus/federation"
)

// Field is a field that the schema of a kind has.
type Field struct {
	Name string
	// Below are the fields of an object, or of the items of a list, by name. One value, a list of
	// values and what has keys of any name have none.
	Below []Field
}

// Fields are those of the spec of a kind, in the version in which its objects are stored. A kind
// that the set does not have, has none.
func (s *Set) Fields(of federation.Kind) ([]Field, error) {
	d, known := s.definitions[of]
	if !known {
		return nil, nil
	}
	c, err := d.versions[d.Storage].schema()
	if err != nil {
		return nil, err
	}
	spec := c.structural.Properties["spec"]
	return fieldsOf(&spec), nil
}

func fieldsOf(s *structural.Structural) (all []Field) {
	if s.Items != nil {
		return fieldsOf(s.Items)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		below := s.Properties[name]
		all = append(all, Field{name, fieldsOf(&below)})
	}
	return all
}
