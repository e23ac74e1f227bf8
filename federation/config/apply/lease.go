package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/manifest"
	"isthmus.dev/isthmus/federation/config/schema"
)

// The bounds of the time for which a workload may be registered.
const (
	MinTTL = 5 * time.Second
	MaxTTL = 24 * time.Hour
)

// InvalidTTL is the code of a time out of these bounds.
const InvalidTTL Code = "INVALID_TTL"

// Register keeps a WorkloadEntry, given as JSON or YAML, until the TTL ends: for
// platforms that the hub has no registry for. A registered one of that name is replaced
// and keeps its UID; an applied one is not. If there are problems, it was refused.
func (e *Engine) Register(ctx context.Context, text []byte, ttl time.Duration) (expires time.Time, problems []Error, err error) {
	w, problems := readWorkload(e.Schema, e.Limits, text, ttl)
	if len(problems) > 0 {
		return time.Time{}, problems, nil
	}
	v := base{e.Views.Latest()}
	if _, applied := v.stored(w.key); applied {
		return time.Time{}, []Error{w.fault(Conflict, "metadata.name",
			fmt.Sprintf("%s was applied and stays until it is deleted: register under another name", w.key))}, nil
	}
	value, faults := e.Schema.Admit(w.value, nil)
	if len(faults) > 0 {
		return time.Time{}, w.faults(faults), nil
	}
	if _, faults := examine(w.key, v.registered(w.key), value); len(faults) > 0 {
		return time.Time{}, w.faults(faults), nil
	}
	stamp(value, v.registered(w.key), e.NewUID, e.Now())
	object, err := encode(w.key, w.kind, value)
	if err != nil {
		return time.Time{}, nil, err
	}
	if problems := w.unused(v, object); len(problems) > 0 {
		return time.Time{}, problems, nil
	}
	e.Validated.rememberWritten(object)
	expires, err = e.Leases.Register(ctx, *object, ttl)
	if err != nil {
		result, err := refusedBy(err)
		return time.Time{}, result.Errors, err
	}
	return expires, nil, nil
}

// unused says what of the registration the mesh would not use.
func (w requested) unused(v base, o *config.Object) []Error {
	_, edit := v.State.Next([]config.Event{{New: o}}, v.Revision())
	var errs []Error
	for _, name := range slices.Sorted(maps.Keys(edit.Problems.Set)) {
		if p := edit.Problems.Set[name]; p.Object == o.Key.Title() && p.Code != federation.CodeWorkloadUnhealthy {
			errs = append(errs, w.fault(Code(p.Code), p.Field, p.Message))
		}
	}
	return errs
}

// registered is a registration as it is, or nil.
func (b base) registered(key federation.ObjectKey) map[string]any {
	o, found := b.State.Object(key)
	if !found || o.Expires.IsZero() {
		return nil
	}
	live, err := decode(o)
	if err != nil {
		return nil
	}
	return live
}

func readWorkload(kinds *schema.Set, limits manifest.Limits, text []byte, ttl time.Duration) (requested, []Error) {
	all, errs := readManifests(kinds, limits, []File{{Data: string(text)}}, defaultNamespace)
	switch {
	case len(errs) > 0:
		return requested{}, errs
	case len(all) != 1 || all[0].key.Of() != federation.WorkloadEntryKind:
		return requested{}, []Error{{Code: InvalidRequest, Message: "a registration is one WorkloadEntry"}}
	case ttl < MinTTL || ttl > MaxTTL:
		return requested{}, []Error{{Code: InvalidTTL, Field: "ttl", Message: fmt.Sprintf("%s is not between %s and %s", ttl, MinTTL, MaxTTL)}}
	}
	return all[0], nil
}
