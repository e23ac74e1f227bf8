package schema

import (
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiserver/pkg/cel/common"
)

// members is a schema as the libraries of CEL read it. That of the library makes the schemas of
// all properties again whenever it is asked for one; here they are made once.
type members struct {
	model.Structural
	properties map[string]common.Schema
	items      common.Schema
	additional common.SchemaOrBool
}

func newMembers(s *structural.Structural) *members {
	m := &members{Structural: model.Structural{Structural: s}}
	if s.Properties != nil {
		m.properties = make(map[string]common.Schema, len(s.Properties))
		for name, property := range s.Properties {
			m.properties[name] = newMembers(&property)
		}
	}
	if s.Items != nil {
		m.items = newMembers(s.Items)
	}
	if a := s.AdditionalProperties; a != nil {
		values := &valuesOrBool{allowed: a.Bool}
		if a.Structural != nil {
			values.of = newMembers(a.Structural)
		}
		m.additional = values
	}
	return m
}

// Properties is part of common.Schema.
func (m *members) Properties() map[string]common.Schema { return m.properties }

// Items is part of common.Schema.
func (m *members) Items() common.Schema { return m.items }

// AdditionalProperties is part of common.Schema.
func (m *members) AdditionalProperties() common.SchemaOrBool { return m.additional }

// valuesOrBool is the schema of the values of a map.
type valuesOrBool struct {
	of      common.Schema
	allowed bool
}

// Schema is part of common.SchemaOrBool.
func (v *valuesOrBool) Schema() common.Schema { return v.of }

// Allows is part of common.SchemaOrBool.
func (v *valuesOrBool) Allows() bool { return v.allowed }
