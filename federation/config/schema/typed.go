package schema

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kube "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// manager merges applied objects of one version of a kind.
type manager struct {
	fields *managedfields.FieldManager
	types  managedfields.TypeConverter
}

// typer knows the types of all versions of a kind, for merging.
type typer struct{ managedfields.TypeConverter }

func (d *definition) compileTypes() (*typer, error) {
	models := map[string]*spec.Schema{}
	for name, v := range d.versions {
		c, err := v.schema()
		if err != nil {
			return nil, err
		}
		model := c.structural.Unfold().ToKubeOpenAPI()
		if model.Properties == nil {
			model.Properties = map[string]spec.Schema{}
		}
		model.Properties["metadata"] = *metadataSchema()
		model.Properties["apiVersion"], model.Properties["kind"] = *spec.StringProperty(), *spec.StringProperty()
		model.AddExtension("x-kubernetes-group-version-kind", []any{
			map[string]any{"group": v.Group, "version": v.Version, "kind": v.Kind},
		})
		models[name] = model
	}
	converter, err := managedfields.NewTypeConverter(models, false)
	if err != nil {
		return nil, fmt.Errorf("the types of %s: %w", d.Kind.Kind, err)
	}
	return &typer{converter}, nil
}

func (v *version) newManager() (*manager, error) {
	types, err := v.definition.typed()
	if err != nil {
		return nil, err
	}
	fields, err := managedfields.NewDefaultCRDFieldManager(types, renamer{}, defaulter{v}, creator{},
		v.GroupVersionKind, v.GroupVersion(), "", nil)
	if err != nil {
		return nil, fmt.Errorf("merging %s: %w", v.GroupVersionKind, err)
	}
	return &manager{fields, types}, nil
}

// renamer converts between the versions of a kind, which differ by name only.
type renamer struct{}

func (renamer) ConvertToVersion(in runtime.Object, to runtime.GroupVersioner) (runtime.Object, error) {
	u, ok := in.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("converting a %T: it is not an unstructured object", in)
	}
	gvk, ok := to.KindForGroupVersionKinds([]kube.GroupVersionKind{u.GroupVersionKind()})
	if !ok {
		return nil, fmt.Errorf("converting %s: no such version", u.GroupVersionKind())
	}
	return &unstructured.Unstructured{Object: renamed(u.Object, gvk.GroupVersion().String())}, nil
}

func (renamer) Convert(_, _, _ any) error { return fmt.Errorf("converting in place is not done") }

func (renamer) ConvertFieldLabel(_ kube.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

// defaulter fills in the defaults of a version.
type defaulter struct{ *version }

func (d defaulter) Default(in runtime.Object) {
	u, ok := in.(*unstructured.Unstructured)
	if !ok {
		return
	}
	if c, err := d.schema(); err == nil {
		fillIn(c, u.Object)
	}
}

// creator makes empty objects.
type creator struct{}

func (creator) New(kind kube.GroupVersionKind) (runtime.Object, error) {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(kind)
	return u, nil
}
