package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql"

	"isthmus.dev/isthmus/graph/compiled"
	"isthmus.dev/isthmus/graph/model"
)

// compact answers a field whose value can be written as a whole: pages of services
// and of endpoints, and what an apply changes, which have thousands of fields.
func compact(next graphql.FieldMiddleware) graphql.FieldMiddleware {
	return func(ctx context.Context, resolve graphql.Resolver) (any, error) {
		found, err := next(ctx, resolve)
		if err != nil {
			return found, err
		}
		var whole graphql.Marshaler
		ok := false
		op, selected := graphql.GetOperationContext(ctx), graphql.GetFieldContext(ctx).Field.Selections
		switch of := found.(type) {
		case *model.ServiceConnection:
			if of != nil {
				whole, ok = plainServices.Marshal(ctx, op, selected, *of)
			}
		case model.ServiceConnection:
			whole, ok = plainServices.Marshal(ctx, op, selected, of)
		case model.EndpointConnection:
			whole, ok = plainEndpoints.Marshal(ctx, op, selected, of)
		case *model.Service:
			if of != nil {
				whole, ok = plainService.Marshal(ctx, op, selected, *of)
			}
		case []model.ConfigChange:
			whole, ok = plainChange.MarshalAll(ctx, op, selected, of)
		}
		if ok {
			return whole, nil
		}
		return found, nil
	}
}

// serviceEndpoints reads the arguments of Service.endpoints. A filter is left to the
// executor.
func serviceEndpoints(args map[string]any) func(context.Context, model.Service) (model.EndpointConnection, error) {
	if args["filter"] != nil {
		return nil
	}
	first, badFirst := argument(args["first"], graphql.UnmarshalInt)
	last, badLast := argument(args["last"], graphql.UnmarshalInt)
	after, badAfter := argument(args["after"], graphql.UnmarshalString)
	before, badBefore := argument(args["before"], graphql.UnmarshalString)
	if badFirst || badLast || badAfter || badBefore {
		return nil
	}
	return func(ctx context.Context, of model.Service) (model.EndpointConnection, error) {
		return serviceResolver{}.Endpoints(ctx, &of, first, after, last, before, nil)
	}
}

func argument[T any](given any, read func(any) (T, error)) (value *T, bad bool) {
	if given == nil {
		return nil, false
	}
	found, err := read(given)
	return &found, err != nil
}

var (
	plainPageInfo = &compiled.Object[model.PageInfo]{Names: []string{"PageInfo"}, Fields: map[string]compiled.Field[model.PageInfo]{
		"hasNextPage":     compiled.Bool(func(p model.PageInfo) bool { return p.HasNextPage }),
		"hasPreviousPage": compiled.Bool(func(p model.PageInfo) bool { return p.HasPreviousPage }),
		"startCursor":     compiled.NullString(func(p model.PageInfo) *string { return p.StartCursor }),
		"endCursor":       compiled.NullString(func(p model.PageInfo) *string { return p.EndCursor }),
	}}
	plainServices = plainPage("Service", plainService, pageOf[model.ServiceConnection, model.ServiceEdge, model.Service]{
		model.ServiceConnection.Edges, model.ServiceConnection.Nodes, model.ServiceConnection.PageInfo, model.ServiceConnection.TotalCount,
		func(e model.ServiceEdge) (string, model.Service) { return e.Cursor, e.Node },
	})
	plainEndpoints = plainPage("Endpoint", plainEndpoint, pageOf[model.EndpointConnection, model.EndpointEdge, model.Endpoint]{
		model.EndpointConnection.Edges, model.EndpointConnection.Nodes, model.EndpointConnection.PageInfo, model.EndpointConnection.TotalCount,
		func(e model.EndpointEdge) (string, model.Endpoint) { return e.Cursor, e.Node },
	})
)

// pageOf says how a page of Ns is read.
type pageOf[C, E, N any] struct {
	edges func(C) []E
	nodes func(C) []N
	info  func(C) model.PageInfo
	total func(C) int
	edge  func(E) (cursor string, node N)
}

func plainPage[C, E, N any](name string, node *compiled.Object[N], of pageOf[C, E, N]) *compiled.Object[C] {
	edge := &compiled.Object[E]{Names: []string{name + "Edge"}, Fields: map[string]compiled.Field[E]{
		"cursor": compiled.String(func(e E) string { cursor, _ := of.edge(e); return cursor }),
		"node":   compiled.One(func(e E) N { _, n := of.edge(e); return n }, node),
	}}
	return &compiled.Object[C]{Names: []string{name + "Connection"}, Fields: map[string]compiled.Field[C]{
		"edges":      compiled.List(of.edges, edge),
		"nodes":      compiled.List(of.nodes, node),
		"pageInfo":   compiled.One(of.info, plainPageInfo),
		"totalCount": compiled.Int(of.total),
	}}
}

// plainService has what methods do not answer with a text, a number or a list of texts.
var plainService = &compiled.Object[model.Service]{Names: []string{"Service", "Node"}, Fields: map[string]compiled.Field[model.Service]{
	"resolution":  compiled.String(model.Service.Resolution),
	"clusterVIPs": compiled.List(model.Service.ClusterVIPs, plainVIPs),
	"ports":       compiled.List(model.Service.Ports, plainServicePort),
	"conflicts":   compiled.List(model.Service.Conflicts, plainConflict),
	"createdAt":   compiled.Scalar(func(s model.Service) graphql.Marshaler { return moment(s.CreatedAt()) }),
	"shards":      compiled.List(model.Service.Shards, plainShard),
	"endpoints":   compiled.Resolved(serviceEndpoints, plainEndpoints),
}}
