package kind

import (
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
	e := Examine(key, object)
	return append(e.OfSpec, e.OfRest...)
}

// Examined is an object that passed its schema, with what the rules of its kind say about it.
type Examined struct {
	schema.Admitted
	OfSpec []validation.Problem // as CheckSpec
	OfRest []validation.Problem
}

// Refused says why the object is refused nevertheless.
func (e Examined) Refused() []validation.Problem { return breaking(slices.Concat(e.OfSpec, e.OfRest)) }

// Examine is Check, and what it decoded. A spec that cannot be decoded is a problem only where
// there are rules; elsewhere its reader reports it.
func Examine(key federation.ObjectKey, object map[string]any) Examined {
	a, err := decodeObject(key.Of(), object)
	switch {
	case Of(key.Of()).check == nil:
		return Examined{Admitted: a}
	case err != nil:
		return Examined{Admitted: a, OfRest: []validation.Problem{{Code: schema.Invalid, Field: "spec", Message: err.Error()}}}
	}
	return Examined{a, CheckSpec(key, a.Spec), CheckMetadata(key, object)}
}

// decodeObject decodes the spec of an object.
func decodeObject(kind federation.Kind, object map[string]any) (a schema.Admitted, err error) {
	a.Object = object
	if spec, has := object["spec"]; has {
		a.JSON, err = schema.JSON(spec)
	}
	if err == nil {
		a.Spec, err = Decode(kind, a.JSON)
	}
	return a, err
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
	return breaking(Check(key, object))
}

// breaking are the problems for which an object is refused.
func breaking(all []validation.Problem) []validation.Problem {
	return slices.DeleteFunc(all, func(p validation.Problem) bool { return p.Code == validation.NoEffect })
}

// Schema is a schema with the rules of the kinds, for sources whose objects nobody
// applies.
type Schema struct {
	*schema.Set
	// Newer: API servers accepted the objects, whose definitions may have fields that the schema does not know.
	Newer bool
}

// Admit validates an object as the schema does, then by the rules of its kind. It takes
// wanted over, which is changed.
func (s Schema) Admit(wanted map[string]any) (schema.Admitted, []validation.Problem) {
	object, unknown, problems := s.take(wanted)
	if len(problems) > 0 {
		return schema.Admitted{}, problems
	}
	e := Examine(KeyOf(object), object)
	if problems := e.Refused(); len(problems) > 0 {
		return schema.Admitted{}, problems
	}
	e.Unknown = unknown
	return e.Admitted, nil
}

// take is Take or TakeKnown of the schema. A policy that restricts traffic is refused if a part of it is not known:
// without it, more would be allowed.
func (s Schema) take(object map[string]any) (kept map[string]any, unknown, problems []validation.Problem) {
	if s.Newer && KeyOf(object).Group != federation.AuthorizationPolicyKind.Group {
		return s.TakeKnown(object)
	}
	kept, problems = s.Take(object, nil)
	return kept, nil, problems
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
