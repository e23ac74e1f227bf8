package apply

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/federation/config/schema"
)

// Delete removes objects, all or none.
func (e *Engine) Delete(ctx context.Context, d Deletion) (Result, error) {
	if len(d.Objects) == 0 {
		return Result{DryRun: d.DryRun, Errors: []Error{{Code: NothingToDo, Field: "objects", Message: "no object is named"}}}, nil
	}
	d.Origin.digest, d.expects = d.digest(), newest(d.ExpectedRevision, nil)
	return e.change(ctx, d.Origin, d.DryRun, func(v base) (plan, []Error) {
		var p plan
		errs := expected(v, d.ExpectedRevision, nil)
		for _, key := range slices.Compact(slices.SortedFunc(slices.Values(d.Objects), federation.ObjectKey.Compare)) {
			change, fault := planDelete(v, key)
			if fault != nil {
				errs = append(errs, *fault)
				continue
			}
			p.changes = append(p.changes, change)
		}
		return p, errs
	})
}

func planDelete(v base, key federation.ObjectKey) (Change, *Error) {
	o, ok := v.stored(key)
	if !ok && v.isUnusable(key) {
		return removal(key, nil), nil
	}
	if !ok {
		if why := v.readOnly(key); why != "" {
			return Change{}, &Error{Code: ReadOnly, Key: key, Message: key.String() + " " + why}
		}
		return Change{}, &Error{Code: NotFound, Key: key, Message: fmt.Sprintf("there is no %s", key)}
	}
	return removal(key, o), nil
}

// Rollback makes the configuration what it was at a revision, as one new
// revision.
func (e *Engine) Rollback(ctx context.Context, r Rollback) (Result, error) {
	r.Origin.digest = r.digest()
	if !r.DryRun { // what was made is answered also when its revision is not in the history any more
		if done, err := e.repeated(ctx, r.Origin); done != nil || err != nil {
			return deref(done), err
		}
	}
	if r.To <= 0 { // nothing was there before the first one, and nothing never means to delete all
		return Result{DryRun: r.DryRun, Errors: []Error{{Code: UnknownRevision, Field: "to", Message: fmt.Sprintf(
			"revision %d: the history begins with revision 1; to remove objects, delete them by name", r.To)}}}, nil
	}
	then, err := e.Log.At(ctx, r.To)
	switch {
	case errors.Is(err, config.ErrUnknownRevision):
		return Result{DryRun: r.DryRun, Errors: []Error{{
			Code: UnknownRevision, Field: "to",
			Message: fmt.Sprintf("revision %d: %v", r.To, err),
		}}}, nil
	case errors.Is(err, config.ErrUnavailable):
		return refusedBy(err)
	case err != nil:
		return Result{}, fmt.Errorf("reading revision %d: %w", r.To, err)
	}
	if r.Message == "" {
		r.Message = fmt.Sprintf("rollback to revision %d", r.To)
	}
	return e.change(ctx, r.Origin, r.DryRun, func(v base) (plan, []Error) { return e.plans.rollback(v, then) })
}

// rollback computes what restores the objects.
func (p planning) rollback(v base, then []config.Object) (plan, []Error) {
	var out plan
	var errs []Error
	stays := map[federation.ObjectKey]bool{}
	for i := range then {
		old := &then[i]
		stays[old.Key] = true
		if kind.Internal(old.Key.Of()) {
			continue
		}
		if _, known := p.schema.Kind(old.Key.Of()); !known {
			out.findings = append(out.findings, unknownKind(old.Key))
			continue
		}
		change, faults := p.restore(v, old)
		out.changes, errs = append(out.changes, change), append(errs, faults...)
	}
	for o := range v.storedObjects() {
		if stays[o.Key] {
			continue
		}
		out.changes = append(out.changes, removal(o.Key, o))
	}
	out.changes = slices.DeleteFunc(out.changes, func(c Change) bool { return c.Action == config.Unchanged })
	slices.SortFunc(out.changes, func(a, b Change) int { return a.Key.Compare(b.Key) })
	return out, errs
}

// unknownKind is the finding that an object of an unknown kind stays as it is.
func unknownKind(key federation.ObjectKey) Finding {
	return Finding{Code: string(schema.UnknownKind), Severity: Warning, Key: key, Message: fmt.Sprintf(
		"%s is left as it is: this version does not know its kind", key)}
}

// restore makes an object what it was; its generation goes on. It must be
// valid as of now, and is written in the version that is stored now.
func (p planning) restore(v base, old *config.Object) (Change, []Error) {
	stored, _ := v.stored(old.Key)
	unusable := v.isUnusable(old.Key)
	if stored != nil && !unusable && stored.APIVersion == old.APIVersion && bytes.Equal(stored.Manifest, old.Manifest) {
		return Change{Key: old.Key, Action: config.Unchanged, Before: stored, Object: stored}, nil
	}
	kind, _ := p.schema.Kind(old.Key.Of())
	was, err := decode(old)
	if err != nil {
		return Change{}, []Error{{Code: Code(schema.Internal), Key: old.Key, Message: err.Error()}}
	}
	value, problems := p.schema.Admit(was, nil)
	if len(problems) > 0 {
		return Change{}, requested{key: old.Key}.faults(problems)
	}
	restoreMetadata(value, was)
	live, err := decode(stored)
	if err != nil {
		live = nil
	}
	restoreCredentials(old.Key, value, live)
	if live != nil {
		if same := sameBesideMetadata(value, live) && sameButGeneration(value, live); same && !unusable {
			return Change{Key: old.Key, Action: config.Unchanged, Before: stored, Object: stored}, nil
		}
		stamp(value, live, p.newUID, p.now())
	}
	c, errs := changeOf(old.Key, kind, stored, schema.Admitted{Object: value})
	return c.rewriting(unusable), errs
}

// restoreMetadata sets what only the store sets to what it was.
func restoreMetadata(value, was map[string]any) {
	m, old := metadataOf(value), metadataOf(was)
	for _, field := range []string{"uid", "creationTimestamp", "generation", "managedFields"} {
		if v, ok := old[field]; ok {
			m[field] = v
		}
	}
}

// sameButGeneration compares metadata; the generation only counts changes.
func sameButGeneration(a, b map[string]any) bool {
	x, y := metadataOf(a), metadataOf(b)
	was := x["generation"]
	x["generation"] = y["generation"]
	same := reflect.DeepEqual(x, y)
	x["generation"] = was
	return same
}
