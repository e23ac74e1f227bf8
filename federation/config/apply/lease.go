package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
)

// The bounds of the time for which a workload may be registered.
const (
	MinTTL = 5 * time.Second
	MaxTTL = 24 * time.Hour
)

// InvalidTTL is the code of a time out of these bounds.
const InvalidTTL Code = "INVALID_TTL"

// Registration is a workload that is there as long as somebody renews it.
type Registration struct {
	Key     federation.ObjectKey
	Expires time.Time
	Errors  []Error
}

// WorkloadEntryKind is the kind of what is registered.
var WorkloadEntryKind = config.WorkloadEntryKind

// Register keeps a WorkloadEntry for so long, for platforms that the hub has no
// registry for. One of that name is replaced; one that was applied is not.
func (e *Engine) Register(ctx context.Context, manifests File, ttl time.Duration) (Registration, error) {
	all, errs := e.readManifests([]File{manifests})
	switch {
	case len(errs) > 0:
		return Registration{Errors: errs}, nil
	case len(all) != 1 || all[0].key.Of() != WorkloadEntryKind:
		return Registration{Errors: []Error{{Code: InvalidRequest, Message: "a registration is one WorkloadEntry"}}}, nil
	case ttl < MinTTL || ttl > MaxTTL:
		return Registration{Errors: []Error{{Code: InvalidTTL, Field: "ttl", Message: fmt.Sprintf("%s is not between %s and %s", ttl, MinTTL, MaxTTL)}}}, nil
	}
	w := all[0]
	if _, applied := (base{e.Views.Latest()}).stored(w.key); applied {
		return Registration{Key: w.key, Errors: []Error{w.fault(Conflict, "metadata.name", fmt.Sprintf("%s was applied and stays until it is deleted: register under another name", w.key))}}, nil
	}
	value, problems := e.Schema.Admit(w.value, nil)
	if len(problems) > 0 {
		return Registration{Key: w.key, Errors: w.faults(problems)}, nil
	}
	stamp(value, nil, e.NewUID, e.Now())
	object, err := encode(w.key, w.kind, value)
	if err != nil {
		return Registration{}, err
	}
	leases, ok := e.Log.(config.Leases)
	if !ok {
		return Registration{Key: w.key, Errors: []Error{{Code: Unavailable, Message: "this store keeps no registrations"}}}, nil
	}
	expires, err := leases.Register(ctx, *object, ttl)
	return registered(w.key, expires, err)
}

// Renew begins the time of a registration anew.
func (e *Engine) Renew(ctx context.Context, namespace, name string) (Registration, error) {
	key := workloadKey(namespace, name)
	leases, ok := e.Log.(config.Leases)
	if !ok {
		return registered(key, time.Time{}, config.ErrNoLease)
	}
	expires, err := leases.Renew(ctx, key)
	return registered(key, expires, err)
}

// Release ends a registration now; one that is not there is none.
func (e *Engine) Release(ctx context.Context, namespace, name string) (Registration, error) {
	key := workloadKey(namespace, name)
	leases, ok := e.Log.(config.Leases)
	if !ok {
		return Registration{Key: key}, nil
	}
	return registered(key, time.Time{}, leases.Release(ctx, key))
}

func workloadKey(namespace, name string) federation.ObjectKey {
	if namespace == "" {
		namespace = "default"
	}
	return federation.ObjectKey{Group: WorkloadEntryKind.Group, Kind: WorkloadEntryKind.Name, Namespace: namespace, Name: name}
}

func registered(key federation.ObjectKey, expires time.Time, err error) (Registration, error) {
	r := Registration{Key: key, Expires: expires}
	if errors.Is(err, config.ErrNoLease) {
		r.Errors = []Error{{Code: NotFound, Key: key, Message: fmt.Sprintf("%s: %v", key, err)}}
		return r, nil
	}
	if err != nil {
		result, err := refusedBy(err)
		r.Errors = result.Errors
		return r, err
	}
	return r, nil
}
