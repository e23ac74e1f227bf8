// Package graph answers the public GraphQL contract from snapshots.
package graph

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/graph/generated"
	"isthmus.dev/isthmus/graph/model"
	"isthmus.dev/isthmus/graph/transport"
)

//go:generate go run ./generate ../gqlgen.yml

// Snapshots has the latest snapshot.
type Snapshots interface {
	Latest() *federation.Snapshot
}

// Counters has what is not part of a snapshot.
type Counters interface {
	// Counters returns when the last event of a cluster came, and when it was last read; zero is unknown.
	Counters(federation.ClusterID) (lastEvent, lastSync time.Time)
	// Usage returns what is kept of a cluster; false: it is not being read.
	Usage(federation.ClusterID) (federation.Usage, federation.Limits, bool)
}

// Fleet has the latest value of the connected proxies.
type Fleet interface {
	Latest() *fleet.Value
}

// Explainer says why proxies send where they do.
type Explainer interface {
	// Explain returns false where no such proxy is connected.
	Explain(
		of *federation.Snapshot, proxies *fleet.Value, proxy string, host federation.Hostname, port uint16,
	) (fleet.Explained, bool)
}

// Inspector knows what proxies were sent.
type Inspector interface {
	// Sent returns the resources of a type that a stream was sent or accepted, by name.
	Sent(of *federation.Snapshot, proxies *fleet.Value, stream fleet.Key, typeURL string) []fleet.SentResource
}

// Options are what the contract is answered from. Snapshots is needed.
type Options struct {
	Snapshots Snapshots
	Counters  Counters  // nil: unknown.
	Fleet     Fleet     // nil: no proxies.
	Explainer Explainer // nil: knows no proxy.
	Inspector Inspector // nil: knows no proxy.
	Config    Config
	Clusters  Clusters  // nil: no cluster can be attached.
	Authority Authority // nil: the hub does not sign.
	Start     Start     // nil: everything was read.
	Hub       model.Hub
	Now       func() time.Time // nil: time.Now.
	Pace      time.Duration    // least time between two events of a subscription; 0: DefaultPace.
}

// DefaultPace is the least time between two events of a subscription.
const DefaultPace = 100 * time.Millisecond

// New makes the executable schema. Each operation reads one snapshot, the
// latest when it begins, and one value of the fleet and of the configuration. A
// mutation reads the snapshot after its change, and each event of a
// subscription one of its own.
func New(options Options) graphql.ExecutableSchema {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Fleet == nil {
		options.Fleet = fleet.New()
	}
	if options.Clusters == nil {
		options.Clusters = noClusters{}
	}
	if options.Authority == nil {
		options.Authority = noAuthority{}
	}
	if options.Pace <= 0 {
		options.Pace = DefaultPace
	}
	resolvers := &resolver{
		Options: options, subscriptions: newSubscriptionCache(), statuses: newStatuses(options),
		overviews: newOverviews(), spans: newSpans(),
	}
	inner := generated.NewExecutableSchema(generated.Config{Resolvers: root{resolvers}})
	return pinned{ExecutableSchema: inner, options: options}
}

// pinned fixes what all fields of an operation read.
type pinned struct {
	graphql.ExecutableSchema
	options Options
	byField bool // nothing is written as a whole; for tests
}

type viewKey struct{}

// view is what one operation sees, or one event of a subscription. What is not read
// beforehand is asked for when a field first needs it.
type view struct {
	snapshot func() *federation.Snapshot
	fleet    func() *fleet.Value
	config   func() *config.View // nil: there is no configuration
	drains   func() map[federation.ObjectKey]federation.DrainProgress
	members  *members
	networks func() map[federation.NetworkID]*networkMembers
	named    func() *namedServices
	roots    *namedRoots
	isEvent  bool // of a subscription, which does not read the store
	// Bytes that were written, which are bounded: of resources of proxies, and of manifests.
	resources, manifests *atomic.Int64
	records              *readRecords
}

// within is a context whose fields see the view, until the view after a mutation takes
// its place.
func within(ctx context.Context, of view) context.Context {
	holder := &atomic.Pointer[view]{}
	holder.Store(&of)
	return context.WithValue(ctx, viewKey{}, holder)
}

func seen(ctx context.Context) *view { return ctx.Value(viewKey{}).(*atomic.Pointer[view]).Load() }

// viewOf reads everything when it is first needed.
func viewOf(o Options) view {
	seen := view{
		resources: new(atomic.Int64), manifests: new(atomic.Int64), fleet: sync.OnceValue(o.Fleet.Latest),
		roots:    &namedRoots{},
		snapshot: sync.OnceValue(o.Snapshots.Latest),
		records:  &readRecords{of: revisions{found: map[int64]config.Record{}}, asked: map[int64]bool{}},
	}
	latest := seen.snapshot
	seen.members = membersOf(latest, seen.fleet)
	seen.networks = sync.OnceValue(func() map[federation.NetworkID]*networkMembers { return networksOf(latest()) })
	seen.named = sync.OnceValue(func() *namedServices { return servicesByName(latest()) })
	seen.drains = sync.OnceValue(func() map[federation.ObjectKey]federation.DrainProgress { return federation.DrainsIn(latest()) })
	if objects := o.Config.Objects; objects != nil {
		seen.config = sync.OnceValue(objects.Latest)
	}
	return seen
}

// viewOfEvent is the view of one event of a subscription: of what is there when the
// event is written, which includes the change that the event is about.
func viewOfEvent(o Options) view {
	seen := viewOf(o)
	if objects := o.Config.Objects; objects != nil {
		seen.config = sync.OnceValue(objects.LatestPublished)
	}
	return seen
}

// Exec pins the view of an operation.
func (p pinned) Exec(ctx context.Context) graphql.ResponseHandler {
	if err := p.awaitStart(ctx); err != nil {
		return refused(ctx, err)
	}
	if at, err := p.awaitRevision(ctx); err != nil {
		return refused(at, err)
	}
	first := viewOf(p.options)
	if first.config != nil { // before the snapshot, which then has its revision, too
		transport.AnswersAs(ctx, first.config().Revision())
	}
	first.snapshot()
	operation := graphql.GetOperationContext(ctx)
	if !p.byField {
		operation.ResolverMiddleware = compact(operation.ResolverMiddleware)
	}
	if operation.Operation.Operation == ast.Mutation {
		operation.ResolverMiddleware = afterChanges(p.options, operation.ResolverMiddleware)
	}
	answer := p.ExecutableSchema.Exec(within(ctx, first))
	return func(ctx context.Context) *graphql.Response {
		of := first
		if operation.Operation.Operation == ast.Subscription {
			of = viewOfEvent(p.options)
			of.isEvent = true
		}
		return answer(within(ctx, of))
	}
}

// afterChanges has what is answered below each mutation see the state after it.
func afterChanges(o Options, next graphql.FieldMiddleware) graphql.FieldMiddleware {
	return func(ctx context.Context, resolve graphql.Resolver) (any, error) {
		found, err := next(ctx, resolve)
		if graphql.GetFieldContext(ctx).Object == "Mutation" {
			after := viewOfEvent(o)
			ctx.Value(viewKey{}).(*atomic.Pointer[view]).Store(&after)
		}
		return found, err
	}
}

func snapshot(ctx context.Context) *federation.Snapshot {
	return seen(ctx).snapshot()
}

func connected(ctx context.Context) *fleet.Value { return seen(ctx).fleet() }

// configured is the configuration that the operation sees.
func configured(ctx context.Context) (*config.View, error) {
	if latest := seen(ctx).config; latest != nil {
		return latest(), nil
	}
	return nil, errNoConfig
}

type resolver struct {
	Options
	subscriptions *subscriptionCache
	statuses      *statuses
	overviews     *overviews
	spans         *spans
}
