package graph

import (
	"context"
	"errors"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/graph/model"
	"isthmus.dev/isthmus/graph/transport"
)

// Changer changes the configuration. An error of its methods is that the hub
// could not answer; what is wrong with a request is in the result.
type Changer interface {
	Apply(context.Context, apply.Request) (apply.Result, error)
	Delete(context.Context, apply.Deletion) (apply.Result, error)
	Rollback(context.Context, apply.Rollback) (apply.Result, error)
}

// Objects has the latest view of the configuration of all sources.
type Objects interface {
	Latest() *config.View
	// LatestPublished returns a view that includes everything that a snapshot already shows.
	LatestPublished() *config.View
}

// History has what was done to the configuration.
type History interface {
	// Records returns up to limit records below the revision before, newest first;
	// before 0 starts at the newest.
	Records(ctx context.Context, before int64, limit int) ([]config.Record, error)
	// At returns every object as of the revision.
	At(ctx context.Context, revision int64) ([]config.Object, error)
}

// ObjectHistory has what was done to one object.
type ObjectHistory interface {
	// History returns it at once, from memory.
	History(ctx context.Context, key federation.ObjectKey) (config.ObjectHistory, error)
}

// Registrar puts workloads into the mesh for some time.
type Registrar interface {
	// Register takes a WorkloadEntry as JSON. With problems it was refused.
	Register(ctx context.Context, manifest []byte, ttl time.Duration) (expires time.Time, problems []apply.Error, err error)
}

// Leases keeps what is registered. Its errors are those of config.Leases.
type Leases interface {
	Renew(ctx context.Context, key federation.ObjectKey) (expires time.Time, err error)
	Release(ctx context.Context, key federation.ObjectKey) error
}

// ProxyState is the progress of something with one proxy.
type ProxyState struct {
	fleet.ProxyID
	State model.RolloutState
	Error string // the words in which the proxy refused
}

// Rollouts knows the progress of changes with proxies.
type Rollouts interface {
	// Rollout returns the proxies that the versions of the snapshot above after, up
	// to upTo, concern, each once; after 0: all proxies. changed is closed when there
	// may be another answer.
	Rollout(after, upTo uint64) (proxies []ProxyState, changed <-chan struct{})
}

// Deliveries knows which proxies have which objects.
type Deliveries interface {
	// Delivery counts the proxies of the fleet that get something made of the object of the
	// snapshot; ok is false where that is not known.
	Delivery(of *federation.Snapshot, proxies *fleet.Value, key federation.ObjectKey) (d Delivery, ok bool)
}

// Delivery is the progress of an object with the proxies that it affects. Each is counted
// once.
type Delivery struct {
	Acked, Unanswered, Rejected, Pending int
	Proxies                              func() []ProxyState // each once
}

// Previewer says what a change would bring about.
type Previewer interface {
	// Preview returns the proxies that would get something else, and
	// the resources that would differ.
	Preview(ctx context.Context, before, after *federation.Snapshot) (proxies []fleet.ProxyID, resources []model.PreviewResource, err error)
}

// Config is what the configuration is read from and changed with. What is nil is
// answered as unavailable, or as unknown where a field may be null.
type Config struct {
	Changer       Changer
	Objects       Objects // The first word of a source's name is its sort, such as "etcd" or "file".
	History       History
	ObjectHistory ObjectHistory
	Registrar     Registrar
	Leases        Leases
	Kinds         []schema.Kind
	Rollouts      Rollouts
	Deliveries    Deliveries
	OtherHubs     func() int // that run on the same store, and have proxies of their own; nil: there are none
	Previewer     Previewer
	// NotHonoured says what an object of the snapshot wants and the hub does not do.
	NotHonoured func(*federation.Snapshot, *federation.Object) []model.NotHonoured
	// Findings are those of an object in the snapshot and at proxies. They and Deliveries
	// depend on nothing else: whatever is built for proxies makes another value of the fleet.
	Findings func(*federation.Snapshot, *fleet.Value, federation.ObjectKey) []apply.Finding
	// ServiceFindings are those of a service that no object alone causes.
	ServiceFindings func(*federation.Snapshot, federation.ServiceKey) []apply.Finding
	// Author names the caller for the history; nil: no caller is named.
	Author func(context.Context) string
	// Epoch tells this store of record from every other.
	Epoch string
}

var errNoConfig = transport.Errorf(transport.Unavailable, "this hub has no configuration store")

// shown makes an error of the store one that clients understand.
func shown(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, config.ErrUnavailable):
		return transport.Errorf(transport.Unavailable, "%s", config.ErrUnavailable)
	case errors.Is(err, config.ErrUnknownRevision):
		return transport.Errorf(transport.NotFound, "%s", config.ErrUnknownRevision)
	}
	return err
}
