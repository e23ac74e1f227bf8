package schema

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
)

// Admitted is an object that may be stored, and what was read of it on the way.
type Admitted struct {
	Object map[string]any  // as Set.Admit gives it; nil: it is of no use
	JSON   json.RawMessage // its spec; nil: it has none, or it was not written
	Spec   any             // that JSON in the Go type of its kind; nil: it was not decoded

	Unknown []Problem // fields that were removed, where a source may have newer definitions
}

// Admit gives the whole object as it is to be stored: in the kind's storage
// version, with defaults filled in. It reports all problems at once; with one,
// it returns nil. Unknown fields are refused. Old is the stored object, nil
// for a new one. Neither is changed.
//
// What only the store sets (status, uid, creationTimestamp, generation,
// resourceVersion, managedFields and the like) is taken from old and ignored in
// wanted.
func (s *Set) Admit(wanted, old map[string]any) (map[string]any, []Problem) {
	return s.Take(runtime.DeepCopyJSON(wanted), old)
}

// Take is Admit for an object that is not needed any more: it is changed, and what is returned
// has parts of it.
func (s *Set) Take(object, old map[string]any) (map[string]any, []Problem) {
	v, problem := s.versionOf(object)
	if problem != nil {
		return nil, []Problem{*problem}
	}
	v.clean(object)
	if old != nil {
		old = renamed(old, v.apiVersion())
		v.adopt(object, runtime.DeepCopyJSON(old))
	}
	return v.admit(object, old, v.decode)
}

// TakeKnown is Take of a new object that an API server accepted, whose definitions may have more
// fields. It removes and returns those that the schema does not know. An object that would mean more than it
// says without them is refused.
func (s *Set) TakeKnown(object map[string]any) (kept map[string]any, unknown, problems []Problem) {
	v, problem := s.versionOf(object)
	if problem != nil {
		return nil, nil, []Problem{*problem}
	}
	v.clean(object)
	kept, problems = v.admit(object, nil, func(c *compiled, object map[string]any) (bool, []Problem) {
		conforms, found := v.decode(c, object)
		found = slices.DeleteFunc(found, func(p Problem) bool {
			harmless := p.Code == UnknownField && !narrows(p.Field) || p.Code == TooManyProblems
			if harmless {
				unknown = append(unknown, Problem{UnknownField, p.Field, cut(p.Message + "; the hub does not support the field")})
			}
			return harmless
		})
		return conforms, found
	})
	return kept, unknown, problems
}

func (s *Set) versionOf(object map[string]any) (*version, *Problem) {
	for _, name := range []string{"apiVersion", "kind"} {
		if value, ok := object[name]; ok {
			if _, ok := value.(string); !ok {
				return nil, &Problem{WrongType, name, "it must be a string"}
			}
		}
	}
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	return s.version(apiVersion, kind)
}

// renamed is the object in another version; its parts are shared.
func renamed(object map[string]any, apiVersion string) map[string]any {
	result := make(map[string]any, len(object))
	for name, value := range object {
		result[name] = value
	}
	result["apiVersion"] = apiVersion
	return result
}

// preparing is what has to be done before an object can be validated. It reports whether the
// object is known to conform to its schema.
type preparing func(*compiled, map[string]any) (conforms bool, problems []Problem)

// admit takes the object over. It and old are of this version.
func (v *version) admit(object, old map[string]any, prepare preparing) (map[string]any, []Problem) {
	c, err := v.schema()
	if err != nil {
		return nil, []Problem{{Internal, "", err.Error()}}
	}
	restore := setManagersAside(object)
	dropNulls(object)
	problems := v.readMetadata(object)
	restore()
	conforms, found := prepare(c, object)
	problems = append(problems, found...)
	more, err := v.validate(c, object, old, conforms)
	if err != nil {
		return nil, []Problem{{Internal, "", err.Error()}}
	}
	problems = append(problems, more...)
	problems = append(problems, v.definition.check(object)...)
	if len(problems) > 0 {
		return nil, problems
	}
	return v.toStorage(object)
}

// decode does what Kubernetes does when it reads an object: unknown fields go,
// nulls without meaning go, defaults come.
func (v *version) decode(c *compiled, object map[string]any) (conforms bool, problems []Problem) {
	if c.readsAsItIs(object) {
		return true, nil
	}
	problems = c.prune(object)
	defaulting.PruneNonNullableNullsWithoutDefaults(object, c.structural)
	if err, _ := objectmeta.CoerceWithOptions(nil, object, c.structural, false, objectmeta.CoerceOptions{}); err != nil {
		problems = append(problems, Problem{Invalid, err.Field, cut(err.ErrorBody())})
	}
	fillIn(c, object)
	return false, problems
}

// readsAsItIs reports that decode would change nothing of an object, which conforms to its
// schema, as is the case for most.
func (c *compiled) readsAsItIs(object map[string]any) bool {
	return !c.defaults && !c.embeds && c.whole().isPlainObject(object)
}

// complete does what Kubernetes does after a merge. A null that the merge left
// stays, as there.
func (v *version) complete(c *compiled, object map[string]any) (conforms bool, problems []Problem) {
	problems = c.prune(object)
	fillIn(c, object)
	return false, problems
}

// setManagersAside takes the managed fields away until the returned function is
// called: only the store writes them, and reading them costs more than all else
// in the metadata.
func setManagersAside(object map[string]any) (restore func()) {
	metadata, _ := object["metadata"].(map[string]any)
	managed, ok := metadata["managedFields"]
	if !ok {
		return func() {}
	}
	delete(metadata, "managedFields")
	return func() {
		if metadata, ok := object["metadata"].(map[string]any); ok {
			metadata["managedFields"] = managed
		}
	}
}

// setMetadata writes the metadata as Kubernetes would.
func setMetadata(object map[string]any, meta *metav1.ObjectMeta) error {
	if err := objectmeta.SetObjectMeta(object, meta); err != nil {
		return err
	}
	if metadata, ok := object["metadata"].(map[string]any); ok && metadata["creationTimestamp"] == nil {
		delete(metadata, "creationTimestamp")
	}
	return nil
}

// validate runs the schema, the list types and the CEL rules. The error is a
// defect of the definition.
func (v *version) validate(c *compiled, object, old map[string]any, conforms bool) ([]Problem, error) {
	var errs field.ErrorList
	var ratchet []cel.Option
	var same *common.CorrelatedObject
	fits := conforms || c.whole().conforms(object)
	if !fits {
		if found := misfitsOf(c.whole(), object, old); found.total > maxListed {
			return found.problems(), nil
		}
	}
	if old != nil {
		same = common.NewCorrelatedObject(object, old, c.members())
		ratchet = append(ratchet, cel.WithRatcheting(same))
	}
	switch {
	case fits:
	case old == nil:
		errs = validation.ValidateCustomResource(nil, object, c.validator)
	default:
		errs = validation.ValidateCustomResourceUpdate(nil, object, old, c.validator, validation.WithRatcheting(same))
	}
	if c.embeds {
		errs = append(errs, c.embedded(object)...)
	}
	if c.lists && (!conforms || c.shared) && (old == nil || len(listtype.ValidateListSetsAndMaps(nil, c.structural, old)) == 0) {
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, c.structural, object)...)
	}
	if len(errs) == 0 && v.quickRules().hold(object, old) {
		return nil, nil
	}
	rules, err := v.rules()
	switch {
	case err != nil:
		return nil, fmt.Errorf("the rules of %s: %w", v.GroupVersionKind, err)
	case rules == nil:
	case blocks(errs):
		errs = append(errs, field.Invalid(nil, nil, notChecked))
	default:
		broken, _ := rules.Validate(context.Background(), nil, c.structural, object, oldOrNil(old), celconfig.RuntimeCELCostBudget, ratchet...)
		errs = append(errs, broken...)
	}
	return problemsOf(errs), nil
}

// oldOrNil keeps a nil map from becoming a value that is not nil.
func oldOrNil(old map[string]any) any {
	if old == nil {
		return nil
	}
	return old
}

// blocks reports whether an object is too wrong for CEL rules, as in Kubernetes.
func blocks(errs field.ErrorList) bool {
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return true
		}
	}
	return false
}

// toStorage gives the object in the storage version. A field that this version
// does not know is a problem, never silently lost.
func (v *version) toStorage(object map[string]any) (map[string]any, []Problem) {
	to := v.storage()
	if to == v {
		return object, nil
	}
	c, err := to.schema()
	if err != nil {
		return nil, []Problem{{Internal, "", err.Error()}}
	}
	object["apiVersion"] = to.apiVersion()
	lost := c.prune(object)
	for i := range lost {
		if lost[i].Code == TooManyProblems {
			continue
		}
		lost[i].Message = fmt.Sprintf("%s, in which the object would be stored, does not have the field", to.apiVersion())
	}
	if len(lost) > 0 {
		return nil, lost
	}
	fillIn(c, object)
	return object, nil
}

func fillIn(c *compiled, object map[string]any) {
	if c.defaults {
		defaulting.Default(object, c.structural)
	}
}
