// Package graph answers the public GraphQL contract from snapshots.
package graph

import (
	"context"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"isthmus.dev/isthmus/federation"
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

// Proxies has the connected proxies in the order of their node IDs.
type Proxies interface {
	Proxies() []model.Proxy
}

// Options are what the contract is answered from. Snapshots is needed.
type Options struct {
	Snapshots Snapshots
	Counters  Counters // nil: unknown.
	Proxies   Proxies  // nil: none.
	Hub       model.Hub
	Now       func() time.Time // nil: time.Now.
}

// New makes the executable schema. Each operation reads one snapshot, the
// latest when it begins.
func New(options Options) graphql.ExecutableSchema {
	if options.Now == nil {
		options.Now = time.Now
	}
	inner := generated.NewExecutableSchema(generated.Config{Resolvers: &resolver{options}})
	return pinned{ExecutableSchema: inner, snapshots: options.Snapshots}
}

type pinned struct {
	graphql.ExecutableSchema
	snapshots Snapshots
}

type snapshotKey struct{}

// Exec pins the snapshot of an operation.
func (p pinned) Exec(ctx context.Context) graphql.ResponseHandler {
	latest := p.snapshots.Latest()
	answer := p.ExecutableSchema.Exec(context.WithValue(ctx, snapshotKey{}, latest))
	return func(ctx context.Context) *graphql.Response {
		return answer(context.WithValue(ctx, snapshotKey{}, latest))
	}
}

func snapshot(ctx context.Context) *federation.Snapshot {
	return ctx.Value(snapshotKey{}).(*federation.Snapshot)
}

type resolver struct{ Options }

func (r *resolver) Query() generated.QueryResolver     { return query{r} }
func (r *resolver) Cluster() generated.ClusterResolver { return clusterResolver{r} }
func (r *resolver) Service() generated.ServiceResolver { return serviceResolver{} }
