package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql"

	"isthmus.dev/isthmus/graph/compiled"
	"isthmus.dev/isthmus/graph/model"
)

// compact answers a field whose value can be written as a whole: pages of services
// and of endpoints, which have thousands of fields.
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
	plainServices = &compiled.Object[model.ServiceConnection]{Names: []string{"ServiceConnection"}, Fields: map[string]compiled.Field[model.ServiceConnection]{
		"edges": compiled.List(model.ServiceConnection.Edges, &compiled.Object[model.ServiceEdge]{
			Names: []string{"ServiceEdge"}, Fields: map[string]compiled.Field[model.ServiceEdge]{
				"cursor": compiled.String(func(e model.ServiceEdge) string { return e.Cursor }),
				"node":   compiled.One(func(e model.ServiceEdge) model.Service { return e.Node }, plainService),
			},
		}),
		"nodes":      compiled.List(model.ServiceConnection.Nodes, plainService),
		"pageInfo":   compiled.One(model.ServiceConnection.PageInfo, plainPageInfo),
		"totalCount": compiled.Int(model.ServiceConnection.TotalCount),
	}}
	plainEndpoints = &compiled.Object[model.EndpointConnection]{Names: []string{"EndpointConnection"}, Fields: map[string]compiled.Field[model.EndpointConnection]{
		"edges": compiled.List(model.EndpointConnection.Edges, &compiled.Object[model.EndpointEdge]{
			Names: []string{"EndpointEdge"}, Fields: map[string]compiled.Field[model.EndpointEdge]{
				"cursor": compiled.String(func(e model.EndpointEdge) string { return e.Cursor }),
				"node":   compiled.One(func(e model.EndpointEdge) model.Endpoint { return e.Node }, plainEndpoint),
			},
		}),
		"nodes":      compiled.List(model.EndpointConnection.Nodes, plainEndpoint),
		"pageInfo":   compiled.One(model.EndpointConnection.PageInfo, plainPageInfo),
		"totalCount": compiled.Int(model.EndpointConnection.TotalCount),
	}}
)

var plainService = &compiled.Object[model.Service]{Names: []string{"Service", "Node"}, Fields: map[string]compiled.Field[model.Service]{
	"id":              compiled.String(model.Service.ID),
	"hostname":        compiled.String(model.Service.Hostname),
	"namespace":       compiled.String(model.Service.Namespace),
	"aliases":         compiled.Strings(model.Service.Aliases),
	"resolution":      compiled.String(model.Service.Resolution),
	"meshExternal":    compiled.Bool(model.Service.MeshExternal),
	"contentHash":     compiled.String(model.Service.ContentHash),
	"clusterVIPs":     compiled.List(model.Service.ClusterVIPs, plainVIPs),
	"ports":           compiled.List(model.Service.Ports, plainServicePort),
	"conflicts":       compiled.List(model.Service.Conflicts, plainConflict),
	"exportTo":        compiled.Strings(model.Service.ExportTo),
	"serviceAccounts": compiled.Strings(model.Service.ServiceAccounts),
	"createdAt":       compiled.Scalar(func(s model.Service) graphql.Marshaler { return moment(s.CreatedAt()) }),
	"shards":          compiled.List(model.Service.Shards, plainShard),
	"endpoints":       compiled.Resolved(serviceEndpoints, plainEndpoints),
}}
