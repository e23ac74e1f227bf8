package apply

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/json"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/internal/parallel"
)

// Apply merges the manifests into what is stored, as server-side apply does, and
// makes the result the configuration, as a whole or not at all.
func (e *Engine) Apply(ctx context.Context, r Request) (Result, error) {
	if r.Manager == "" {
		r.Manager = DefaultManager
	}
	r.manager, r.Origin.digest = r.Manager, r.digest()
	errs := append(r.check(), checkSize(e.Limits, r.Manifests)...)
	if len(errs) > 0 {
		return Result{DryRun: r.DryRun, Revision: base{e.Views.Latest()}.Revision(), Errors: errs}, nil
	}
	all, errs := readManifests(e.Schema, e.Limits, r.Manifests, cmp.Or(r.Namespace, defaultNamespace))
	if len(errs) > 0 {
		on := base{e.Views.Latest()}
		return bounded(Result{DryRun: r.DryRun, Revision: on.Revision(), Errors: e.plans.withOthers(ctx, on, r, all, errs)}), ctx.Err()
	}
	r.expects = newest(r.ExpectedRevision, r.ExpectedRevisions)
	return e.change(ctx, r.Origin, r.DryRun, func(v base) (plan, []Error) {
		if all == nil { // another hub was faster: everything is merged again
			all, _ = readManifests(e.Schema, e.Limits, r.Manifests, cmp.Or(r.Namespace, defaultNamespace))
		}
		p, errs := e.plans.apply(ctx, v, r, all)
		all = nil
		return p, errs
	})
}

// apply uses the manifests up: what was read of one takes many times its text,
// and goes once it is merged. The plan is of no use if the context ended.
func (p planning) apply(ctx context.Context, v base, r Request, all []requested) (plan, []Error) {
	errs := expected(v, r.ExpectedRevision, r.ExpectedRevisions)
	out := plan{credentials: r.Credentials}
	out.changes = make([]Change, len(all))
	faults := make([][]Error, len(all))
	preparer := v.State.Preparer()
	parallel.Each(len(all), func(i int) {
		if ctx.Err() != nil {
			return
		}
		w := all[i].again()
		out.changes[i], faults[i] = p.one(v, r, w)
		if o := out.changes[i].Object; o != nil && len(faults[i]) == 0 {
			preparer.Prepare(o)
		}
		faults[i] = w.placed(faults[i])
		all[i] = requested{key: all[i].key}
	})
	errs = append(errs, slices.Concat(faults...)...)
	if r.Prune && ctx.Err() == nil {
		gone, faults := planPrune(v, r, all)
		out.changes = append(out.changes, gone...)
		errs = append(errs, faults...)
	}
	slices.SortFunc(out.changes, func(a, b Change) int { return a.Key.Compare(b.Key) })
	return out, errs
}

// expected checks the revisions that the request was computed from.
func expected(v base, whole *int64, each map[federation.ObjectKey]int64) []Error {
	var errs []Error
	if whole != nil && *whole != v.Revision() {
		errs = append(errs, Error{
			Code: PreconditionFailed, Field: "expectedRevision",
			Message: fmt.Sprintf("the configuration is at revision %d, not at %d: read it again, then repeat", v.Revision(), *whole),
		})
	}
	for _, key := range slices.SortedFunc(maps.Keys(each), federation.ObjectKey.Compare) {
		var now int64
		if o, ok := v.stored(key); ok {
			now = o.Revision
		}
		if now != each[key] {
			errs = append(errs, Error{
				Code: PreconditionFailed, Field: "expectedRevisions", Key: key,
				Message: fmt.Sprintf("%s is at revision %d, not at %d (0: it does not exist): read it again, then repeat", key, now, each[key]),
			})
		}
	}
	return errs
}

// one merges one manifest.
func (p planning) one(v base, r Request, w requested) (Change, []Error) {
	stored, _ := v.stored(w.key)
	live, err := decode(stored)
	if err != nil {
		return Change{}, []Error{w.fault(Code(schema.Internal), "", err.Error())}
	}
	if r.CompareResourceVersion {
		if fault := w.precondition(stored); fault != nil {
			return Change{}, []Error{*fault}
		}
	}
	if r.Set != "" {
		setLabel(w.value, r.Set)
	}
	merged, err := p.schema.Apply(live, w.value, schema.ApplyOptions{Manager: r.Manager, Force: r.Force, Now: p.now()})
	switch {
	case err != nil:
		return Change{}, []Error{w.fault(Code(schema.Invalid), "", err.Error())}
	case len(merged.Problems)+len(merged.Conflicts) > 0:
		return Change{}, append(w.faults(merged.Problems), w.conflicts(merged.Conflicts)...)
	}
	examined, problems := examine(w.key, live, merged.Object)
	if len(problems) > 0 {
		return Change{}, w.faults(problems)
	}
	if fault := stampCredentials(r.Credentials, w, live, merged.Object); fault != nil {
		return Change{}, []Error{*fault}
	}
	stamp(merged.Object, live, p.newUID, p.now())
	c, errs := changeOf(w.key, w.kind, stored, examined.Admitted)
	if said := examined.OfSpec; examined.JSON != nil {
		c.said = &said
	}
	return c.rewriting(v.isUnusable(w.key)), errs
}

// examine says which rules of its kind an object breaks. What was stored stays
// valid, as rules may be newer than it: its status has the findings.
func examine(key federation.ObjectKey, live, now map[string]any) (kind.Examined, []schema.Problem) {
	if live == nil || !reflect.DeepEqual(live["spec"], now["spec"]) {
		e := kind.Examine(key, now)
		return e, e.Refused()
	}
	stored := kind.CheckMetadata(key, live)
	more := slices.DeleteFunc(kind.CheckMetadata(key, now), func(p schema.Problem) bool { return slices.Contains(stored, p) })
	return kind.Examined{Admitted: schema.Admitted{Object: now}}, more
}

// rewriting is the change that is written though nothing differs, because the
// store does not use the value that it has.
func (c Change) rewriting(unusable bool) Change {
	if unusable && c.Action == config.Unchanged {
		c.Action = config.Updated
	}
	return c
}

// precondition is Kubernetes' rule for a manifest that names the version of the
// object that it was made from.
func (w requested) precondition(stored *config.Object) *Error {
	version := text(w.value, "metadata", "resourceVersion")
	now := "does not exist"
	if stored != nil {
		if version == strconv.FormatInt(stored.Revision, 10) {
			return nil
		}
		now = fmt.Sprintf("is at revision %d", stored.Revision)
	}
	if version == "" {
		return nil
	}
	fault := w.fault(PreconditionFailed, "metadata.resourceVersion", fmt.Sprintf(
		"the manifest was made from version %.40q, and %s %s: read it again, or apply without comparing versions", version, w.key, now))
	return &fault
}

// changeOf compares an object with what is stored of it.
func changeOf(key federation.ObjectKey, of schema.Kind, stored *config.Object, now schema.Admitted) (Change, []Error) {
	object, err := config.NewObject(key, of.APIVersion(), now)
	if err != nil {
		return Change{}, []Error{{Code: Code(schema.Internal), Key: key, Message: err.Error()}}
	}
	if stored != nil && string(stored.Manifest) == string(object.Manifest) {
		return Change{Key: key, Action: config.Unchanged, Before: stored, Object: stored}, nil
	}
	c := Change{Key: key, Action: config.Created, Before: stored, Object: object}
	if stored != nil {
		c.Action = config.Updated
	}
	return c, nil
}

func (w requested) faults(problems []schema.Problem) []Error {
	errs := make([]Error, len(problems))
	for i, p := range problems {
		errs[i] = w.fault(Code(p.Code), p.Field, p.Message)
	}
	return errs
}

func (w requested) conflicts(all []schema.FieldConflict) []Error {
	errs := make([]Error, len(all))
	for i, c := range all {
		errs[i] = w.fault(Conflict, c.Field, fmt.Sprintf(
			"%s is set by %q to %s, and this apply wants %s: remove the field, take the value over, or force",
			c.Field, c.Manager, valueText(c.Current), valueText(c.Wanted)))
		errs[i].Manager = c.Manager
	}
	return errs
}

func setLabel(value map[string]any, set string) {
	m := metadataOf(value)
	labels, ok := m["labels"].(map[string]any)
	if !ok && m["labels"] != nil {
		return // it is refused for its type
	}
	if !ok {
		labels = map[string]any{}
		m["labels"] = labels
	}
	labels[SetLabel] = set
}

// maxValueText bounds what a message shows of a value.
const maxValueText = 200

func valueText(v any) string {
	text, err := json.Marshal(v)
	switch {
	case v == nil || err != nil:
		return "nothing"
	case len(text) > maxValueText:
		return string(text[:maxValueText]) + "…"
	}
	return string(text)
}
