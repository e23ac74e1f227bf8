package schema

import (
	"maps"
	"slices"

	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apicel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"
)

// compileQuickRules returns nil where the library has to judge every object.
func (v *version) compileQuickRules() *rules {
	c, err := v.schema()
	if err != nil {
		return nil
	}
	compiler := &ruleCompiler{complete: true}
	root := compiler.compile(c.structural, c.members(), model.SchemaDeclType(c.structural, true), true)
	if !compiler.complete {
		return nil
	}
	return root
}

// ruleCompiler compiles the rules of a schema level by level.
type ruleCompiler struct {
	complete bool // nothing is left to the library
}

// compile returns nil where no rule is.
func (c *ruleCompiler) compile(s *structural.Structural, read common.Schema, declared *apicel.DeclType, root bool) *rules {
	r := &rules{schema: read, properties: map[string]*rules{}}
	c.own(r, s, declared, root)
	if s.Items != nil {
		r.items = c.compile(s.Items, read.Items(), elements(declared), s.Items.XEmbeddedResource)
	}
	if a := s.AdditionalProperties; a != nil && a.Structural != nil {
		r.additional = c.compile(a.Structural, read.AdditionalProperties().Schema(), elements(declared), a.Structural.XEmbeddedResource)
	}
	members := read.Properties()
	for name, property := range s.Properties {
		if field := fieldOf(declared, name, &property); field != nil {
			r.properties[name] = c.compile(&property, members[name], field, property.XEmbeddedResource)
		}
	}
	maps.DeleteFunc(r.properties, func(_ string, below *rules) bool { return below == nil })
	if len(r.programs) == 0 && !r.oldSelf && r.items == nil && r.additional == nil && len(r.properties) == 0 {
		return nil
	}
	return r
}

// own compiles the rules of one level.
func (c *ruleCompiler) own(r *rules, s *structural.Structural, declared *apicel.DeclType, root bool) {
	if s.ValueValidation != nil && len(s.ValueValidation.AllOf) > 0 && haveRules(s.ValueValidation.AllOf) {
		c.complete = false
	}
	if len(s.XValidations) == 0 {
		return
	}
	environments := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	compiled, err := cel.Compile(s, declared, celconfig.PerCallLimit, environments, cel.StoredExpressionsEnvLoader())
	if err != nil {
		c.complete = false
		return
	}
	if root {
		r.schema = newMembers(model.WithTypeAndObjectMeta(s))
	}
	for i, rule := range compiled {
		switch {
		case rule.Error != nil || s.XValidations[i].OptionalOldSelf != nil:
			c.complete = false
		case rule.UsesOldSelf:
			r.oldSelf = true
		case rule.Program != nil:
			r.programs = append(r.programs, rule.Program)
		}
	}
}

// haveRules reports whether one of the schemas that a value must fulfil besides has rules.
func haveRules(all []structural.NestedValueValidation) bool {
	for _, n := range all {
		below := slices.Concat(n.AllOf, slices.Collect(maps.Values(n.Properties)))
		if n.Items != nil {
			below = append(below, *n.Items)
		}
		if n.AdditionalProperties != nil {
			below = append(below, *n.AdditionalProperties)
		}
		if len(n.XValidations) > 0 || haveRules(below) {
			return true
		}
	}
	return false
}

// elements is the type of the members of a list or a map.
func elements(declared *apicel.DeclType) *apicel.DeclType {
	if declared == nil {
		return nil
	}
	return declared.ElemType
}

// fieldOf is the type of a property; nil: rules know nothing of it, nor of what is in it.
func fieldOf(declared *apicel.DeclType, name string, property *structural.Structural) *apicel.DeclType {
	escaped, ok := apicel.Escape(name)
	switch {
	case !ok:
		return model.SchemaDeclType(property, property.XEmbeddedResource)
	case declared == nil || declared.Fields[escaped] == nil:
		return nil
	}
	return declared.Fields[escaped].Type
}
