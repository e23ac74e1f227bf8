package kind

import (
	"encoding/json"
	"slices"
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/analysis"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/federation/config/validation"
)

// CheckSpec checks a spec of the kind's own Go type, as objects of a snapshot have it.
func CheckSpec(key federation.ObjectKey, spec any) []validation.Problem {
	r := Of(key.Of())
	if r.check == nil || spec == nil {
		return nil
	}
	found := r.check(key.Namespace, spec)
	if r.objectName != nil && key.Name != "" {
		found = append(found, validation.Name(r.objectName(key.Name))...)
	}
	return found
}

// Check checks an object that passed its schema.
func Check(key federation.ObjectKey, object map[string]any) []validation.Problem {
	if Of(key.Of()).check == nil {
		return nil
	}
	raw, err := json.Marshal(object["spec"])
	if err != nil {
		return []validation.Problem{{Code: schema.Invalid, Field: "spec", Message: err.Error()}}
	}
	spec, err := Decode(key.Of(), raw)
	if err != nil {
		return []validation.Problem{{Code: schema.Invalid, Field: "spec", Message: err.Error()}}
	}
	return append(CheckSpec(key, spec), CheckMetadata(key, object)...)
}

// CheckMetadata checks the metadata of an object whose spec has rules.
func CheckMetadata(key federation.ObjectKey, object map[string]any) []validation.Problem {
	r := Of(key.Of())
	if r.check == nil {
		return nil
	}
	return validation.DryRun(object, r.dryRun)
}

// Refuse says why an object that passed its schema is refused nevertheless.
func Refuse(key federation.ObjectKey, object map[string]any) []validation.Problem {
	return slices.DeleteFunc(Check(key, object), func(p validation.Problem) bool { return p.Code == validation.NoEffect })
}

// Schema is a schema with the rules of the kinds, for sources whose objects nobody
// applies.
type Schema struct{ *schema.Set }

// Admit validates an object as the schema does, then by the rules of its kind. It takes
// wanted over, which is changed.
func (s Schema) Admit(wanted, old map[string]any) (map[string]any, []validation.Problem) {
	object, problems := s.Take(wanted, old)
	if len(problems) > 0 {
		return nil, problems
	}
	if problems := Refuse(KeyOf(object), object); len(problems) > 0 {
		return nil, problems
	}
	return object, nil
}

// KeyOf is the key by which the row of an object is found.
func KeyOf(object map[string]any) federation.ObjectKey {
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	metadata, _ := object["metadata"].(map[string]any)
	namespace, _ := metadata["namespace"].(string)
	name, _ := metadata["name"].(string)
	group, _, _ := strings.Cut(apiVersion, "/")
	return federation.ObjectKey{Group: group, Kind: kind, Namespace: namespace, Name: name}
}

// References adds what the object refers to and the snapshot does not have.
func References(to *analysis.References, o *federation.Object) {
	if r := Of(o.Key.Of()); r.references != nil && o.Spec != nil {
		r.references(to, o.Spec)
	}
}

// Restricts reports whether objects of the kind may ask for a restriction of traffic that
// nothing enforces.
func (r *Row) Restricts() bool { return r.unenforced != nil }

// Unenforced says why an object leaves traffic open that it means to restrict; empty:
// it means to restrict nothing.
func Unenforced(o *federation.Object) string {
	r := Of(o.Key.Of())
	if r.unenforced == nil || o.Spec == nil {
		return ""
	}
	return r.unenforced(o.Spec)
}
