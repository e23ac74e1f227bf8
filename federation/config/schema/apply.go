package schema

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// ApplyOptions say who applies, and how.
type ApplyOptions struct {
	Manager string // of the fields; 1 to 128 printable characters
	Force   bool   // take fields that others own
	Now     time.Time
}

// Result is what an apply comes to: an object to store, or why there is none.
type Result struct {
	Object    map[string]any // in the storage version; nil with a problem or a conflict
	Conflicts []FieldConflict
	Problems  []Problem
}

// Apply merges what is wanted into the stored object as server-side apply does,
// and admits what comes out. Live is nil for a new object; wanted has the fields
// that the manager cares for, and those that it no longer names go. What only the
// store sets is kept from live and ignored in wanted; an apply that changes
// nothing gives live as it was. Neither is changed. The error is a defect, or of
// the options.
func (s *Set) Apply(live, wanted map[string]any, o ApplyOptions) (Result, error) {
	v, problems, err := s.prepare(wanted, o)
	if err != nil || len(problems) > 0 {
		return Result{Problems: problems}, err
	}
	wanted = runtime.DeepCopyJSON(wanted)
	v.clean(wanted)
	if live == nil {
		if created, done := v.create(wanted, o); done {
			return created, nil
		}
	}
	return v.merge(live, wanted, o)
}

// merge is Apply by the library. Wanted is clean.
func (v *version) merge(live, wanted map[string]any, o ApplyOptions) (Result, error) {
	m, err := v.manager()
	if err != nil {
		return Result{}, err
	}
	merged, err := m.fields.Apply(v.unstructured(live), &unstructured.Unstructured{Object: wanted}, o.Manager, o.Force)
	if conflicts := conflictsOf(err, live, wanted); len(conflicts) > 0 {
		return Result{Conflicts: conflicts}, nil
	}
	if err != nil {
		problems := v.diagnose(m, wanted, live, err)
		return Result{Problems: withUncovered(problems, v.beside(m, wanted, live, o))}, nil
	}
	return v.finish(merged, live, o), nil
}

// Replace sets the whole object, as an update does: the manager then owns what it
// changed, also of others.
func (s *Set) Replace(live, wanted map[string]any, o ApplyOptions) (Result, error) {
	v, problems, err := s.prepare(wanted, o)
	if err != nil || len(problems) > 0 {
		return Result{Problems: problems}, err
	}
	object := runtime.DeepCopyJSON(wanted)
	v.clean(object)
	old := v.copyOf(live)
	v.adopt(object, old)
	c, err := v.schema()
	if err != nil {
		return Result{}, err
	}
	if _, problems := v.decode(c, object); len(problems) > 0 {
		_, problems = s.Admit(wanted, live)
		return Result{Problems: problems}, nil
	}
	m, err := v.manager()
	if err != nil {
		return Result{}, err
	}
	replaced, err := m.fields.Update(v.unstructured(live), &unstructured.Unstructured{Object: object}, o.Manager)
	if err != nil {
		_, problems = s.Admit(wanted, live)
		return Result{Problems: append(problems, Problem{Invalid, "", cut(err.Error())})}, nil
	}
	return v.finish(replaced, live, o), nil
}

func (s *Set) prepare(wanted map[string]any, o ApplyOptions) (*version, []Problem, error) {
	if err := checkManager(o.Manager); err != nil {
		return nil, nil, err
	}
	v, problem := s.versionOf(wanted)
	if problem != nil {
		return nil, []Problem{*problem}, nil
	}
	return v, nil, nil
}

func checkManager(name string) error {
	if name == "" || len(name) > 128 {
		return fmt.Errorf("the field manager %q: 1 to 128 characters are needed", shorten(name))
	}
	for _, r := range name {
		if !printable(r) {
			return errors.New("the field manager has characters that cannot be printed")
		}
	}
	return nil
}

// diagnose says why the library does not merge what is wanted: unknown fields
// and wrong types. For a new object it says all else that is wrong with it too.
func (v *version) diagnose(m *manager, wanted, live map[string]any, why error) []Problem {
	c, err := v.schema()
	if err != nil {
		return []Problem{{Internal, "", err.Error()}}
	}
	pruned := runtime.DeepCopyJSON(wanted)
	dropNulls(pruned)
	_, problems := v.checkMetadata(pruned)
	problems = append(problems, c.prune(pruned)...)
	_, err = m.types.ObjectToTyped(&unstructured.Unstructured{Object: pruned})
	if wrong := typeProblems(err); len(wrong) > maxListed {
		// Kubernetes' validation compares each problem with all before it.
		return append(problems, bounded(wrong)...)
	}
	if len(problems) == 0 {
		_, err = m.types.ObjectToTyped(&unstructured.Unstructured{Object: wanted})
		problems = typeProblems(err)
	}
	if live == nil {
		_, all := v.admit(runtime.DeepCopyJSON(wanted), nil, v.decode)
		problems = withUncovered(all, problems)
	}
	if len(problems) == 0 {
		problems = []Problem{{Invalid, "", cut(why.Error())}}
	}
	return problems
}

// beside says what else would be wrong with a stored object if wanted had no
// unknown fields; nothing where other types are wrong too, or where hardly
// anything is left without those fields.
func (v *version) beside(m *manager, wanted, live map[string]any, o ApplyOptions) []Problem {
	c, err := v.schema()
	if err != nil || live == nil {
		return nil
	}
	pruned := runtime.DeepCopyJSON(wanted)
	c.prune(pruned)
	if spec, ok := pruned["spec"].(map[string]any); ok && len(spec) == 0 {
		return nil
	}
	merged, err := m.fields.Apply(v.unstructured(live), &unstructured.Unstructured{Object: pruned}, o.Manager, true)
	if err != nil {
		return nil
	}
	return v.finish(merged, live, o).Problems
}

// withUncovered adds those of more whose field has no problem yet.
func withUncovered(problems, more []Problem) []Problem {
	covered := make(map[string]bool, len(problems)+len(more))
	for _, p := range problems {
		covered[p.Field] = true
	}
	for _, p := range more {
		if !covered[p.Field] {
			covered[p.Field] = true
			problems = append(problems, p)
		}
	}
	return problems
}

// typeProblems takes the errors of the merge library apart.
func typeProblems(err error) []Problem {
	var all typed.ValidationErrors
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &all):
		return []Problem{{WrongType, "", cut(err.Error())}}
	}
	problems := make([]Problem, len(all))
	for i, e := range all {
		at := e.Path
		if len(at) > 0 && at[0] == '.' {
			at = at[1:]
		}
		problems[i] = Problem{WrongType, at, cut(e.ErrorMessage)}
	}
	return problems
}

// bounded are the problems that are listed, and one for those that are not.
func bounded(problems []Problem) []Problem {
	if len(problems) <= maxListed {
		return problems
	}
	return append(problems[:maxListed-1:maxListed-1], notListed(len(problems)-maxListed+1))
}

// finish admits what came of a merge. Old is not changed.
func (v *version) finish(merged runtime.Object, live map[string]any, o ApplyOptions) Result {
	object, ok := merged.(*unstructured.Unstructured)
	if !ok {
		return Result{Problems: []Problem{{Internal, "", fmt.Sprintf("merging gave a %T", merged)}}}
	}
	old := v.copyOf(live)
	managed := object.GetManagedFields()
	stamp(managed, old, o.Now)
	v.adopt(object.Object, old)
	object.SetManagedFields(managed)
	if live != nil && reflect.DeepEqual(object.Object, old) {
		return Result{Object: runtime.DeepCopyJSON(live)}
	}
	admitted, problems := v.admit(object.Object, old, v.complete)
	return Result{Object: admitted, Problems: problems}
}

// copyOf gives a stored object in this version; nil stays nil.
func (v *version) copyOf(live map[string]any) map[string]any {
	if live == nil {
		return nil
	}
	return renamed(runtime.DeepCopyJSON(live), v.apiVersion())
}

// unstructured gives a stored object as the library takes it; none is an empty
// one.
func (v *version) unstructured(live map[string]any) *unstructured.Unstructured {
	if live == nil {
		live = map[string]any{"kind": v.Kind}
	}
	return &unstructured.Unstructured{Object: v.copyOf(live)}
}

// stamp gives the time now to the entries that are not in old as they are.
func stamp(managed []metav1.ManagedFieldsEntry, old map[string]any, now time.Time) {
	type entry struct {
		manager, apiVersion, subresource string
		operation                        metav1.ManagedFieldsOperationType
		time                             int64
	}
	of := func(m metav1.ManagedFieldsEntry) entry {
		e := entry{m.Manager, m.APIVersion, m.Subresource, m.Operation, 0}
		if m.Time != nil {
			e.time = m.Time.Unix()
		}
		return e
	}
	known := map[entry]bool{}
	for _, m := range (&unstructured.Unstructured{Object: old}).GetManagedFields() {
		known[of(m)] = true
	}
	for i := range managed {
		if !known[of(managed[i])] {
			at := metav1.NewTime(now.UTC().Truncate(time.Second))
			managed[i].Time = &at
		}
	}
}

// isConflict reports whether others own what an apply would change.
func isConflict(err error) (*apierrors.StatusError, bool) {
	var status *apierrors.StatusError
	if !errors.As(err, &status) || status.Status().Reason != metav1.StatusReasonConflict {
		return nil, false
	}
	return status, true
}
