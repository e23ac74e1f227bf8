package schema

import (
	"encoding/json"
	"fmt"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	kube "k8s.io/apimachinery/pkg/runtime/schema"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// version is one version of a kind. What costs is done when it is first needed.
type version struct {
	definition *definition
	kube.GroupVersionKind
	served  bool
	status  bool // written apart, by the hub alone
	raw     json.RawMessage
	schema  func() (*compiled, error)
	rules   func() (*cel.Validator, error)
	manager func() (*manager, error)

	quickRules func() *rules // tells fast that no rule is broken; nil: the library has to say it
}

// compiled is a schema in the forms that the libraries want.
type compiled struct {
	structural *structural.Structural
	validator  validation.SchemaValidator
	whole      levelOf // tells fast that the validator would find nothing
	members    func() *members

	// Of most kinds, no version has any of these.
	defaults, embeds, lists bool
	shared                  bool // a list or an object is owned otherwise than by members, or by keys
}

func newVersion(d *definition, h versionHeader) *version {
	v := &version{
		definition: d, served: h.Served, status: h.Subresources.Status != nil, raw: h.Schema,
		GroupVersionKind: kube.GroupVersionKind{Group: d.Group, Version: h.Name, Kind: d.Name},
	}
	v.schema = sync.OnceValues(v.compile)
	v.rules = sync.OnceValues(v.compileRules)
	v.manager = sync.OnceValues(v.newManager)
	v.quickRules = sync.OnceValue(v.compileQuickRules)
	return v
}

func (v *version) apiVersion() string { return v.GroupVersion().String() }

func (v *version) storage() *version { return v.definition.versions[v.definition.Storage] }

func (v *version) compile() (*compiled, error) {
	public, internal := apiextensionsv1.CustomResourceValidation{}, apiextensions.CustomResourceValidation{}
	if err := json.Unmarshal(v.raw, &public); err != nil {
		return nil, fmt.Errorf("reading the schema of %s: %w", v.GroupVersionKind, err)
	}
	if err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(&public,
		&internal, nil); err != nil {
		return nil, fmt.Errorf("converting the schema of %s: %w", v.GroupVersionKind, err)
	}
	s, err := structural.NewStructural(internal.OpenAPIV3Schema)
	if err != nil {
		return nil, fmt.Errorf("the schema of %s: %w", v.GroupVersionKind, err)
	}
	s = s.DeepCopy()
	if s == nil {
		return nil, fmt.Errorf("the definition of %s has no schema", v.GroupVersionKind)
	}
	if err := defaulting.PruneDefaults(s); err != nil {
		return nil, fmt.Errorf("the defaults of %s: %w", v.GroupVersionKind, err)
	}
	validator, open, err := validation.NewSchemaValidator(internal.OpenAPIV3Schema)
	if err != nil {
		return nil, fmt.Errorf("the schema of %s: %w", v.GroupVersionKind, err)
	}
	c := &compiled{structural: s, validator: validator, whole: levelFor(open)}
	c.members = sync.OnceValue(func() *members { return newMembers(s) })
	features := structural.Visitor{Structural: func(at *structural.Structural) bool {
		c.defaults = c.defaults || at.Default.Object != nil
		c.embeds = c.embeds || at.XEmbeddedResource
		c.lists = c.lists || at.XListType != nil
		c.shared = c.shared || at.XMapType != nil || at.XListType != nil && *at.XListType == "set"
		return false
	}}
	features.Visit(s)
	return c, nil
}

// compileRules compiles the CEL rules; without any it gives nil.
func (v *version) compileRules() (*cel.Validator, error) {
	c, err := v.schema()
	if err != nil {
		return nil, err
	}
	return cel.NewValidator(c.structural, true, celconfig.PerCallLimit), nil
}
