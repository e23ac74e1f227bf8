// Package graph answers the public GraphQL contract from snapshots.
package graph

import (
	"context"
	"sync"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/graph/generated"
	"isthmus.dev/isthmus/graph/model"
)

//go:generate go run ./generate ../gqlgen.yml

// Snapshots has the latest snapshot.
type Snapshots interface {
	Latest() *federation.Snapshot
}

// Counters has the moments that are not part of a snapshot; zero is unknown.
type Counters interface {
	Counters(federation.ClusterID) (lastEvent, lastSync time.Time)
}

// Fleet has the latest value of the connected proxies.
type Fleet interface {
	Latest() *fleet.Value
}

// Options are what the contract is answered from. Snapshots is needed.
type Options struct {
	Snapshots Snapshots
	Counters  Counters // nil: unknown.
	Fleet     Fleet    // nil: no proxies.
	Hub       model.Hub
	Now       func() time.Time // nil: time.Now.
}

// New makes the executable schema. Each operation reads one snapshot, the
// latest when it begins, and one value of the fleet.
func New(options Options) graphql.ExecutableSchema {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Fleet == nil {
		options.Fleet = fleet.New()
	}
	inner := generated.NewExecutableSchema(generated.Config{Resolvers: &resolver{options}})
	return pinned{ExecutableSchema: inner, options: options}
}

// pinned fixes what all fields of an operation speak of.
type pinned struct {
	graphql.ExecutableSchema
	options Options
}

type viewKey struct{}

// view is what one operation sees. The fleet is asked for when a field first
// needs it.
type view struct {
	snapshot *federation.Snapshot
	fleet    func() *fleet.Value
}

// Exec pins the view of an operation.
func (p pinned) Exec(ctx context.Context) graphql.ResponseHandler {
	seen := view{snapshot: p.options.Snapshots.Latest(), fleet: sync.OnceValue(p.options.Fleet.Latest)}
	answer := p.ExecutableSchema.Exec(context.WithValue(ctx, viewKey{}, seen))
	return func(ctx context.Context) *graphql.Response {
		return answer(context.WithValue(ctx, viewKey{}, seen))
	}
}

func snapshot(ctx context.Context) *federation.Snapshot { return ctx.Value(viewKey{}).(view).snapshot }

func connected(ctx context.Context) *fleet.Value { return ctx.Value(viewKey{}).(view).fleet() }

type resolver struct{ Options }

func (r *resolver) Query() generated.QueryResolver     { return query{r} }
func (r *resolver) Cluster() generated.ClusterResolver { return clusterResolver{r} }
func (r *resolver) Service() generated.ServiceResolver { return serviceResolver{} }
