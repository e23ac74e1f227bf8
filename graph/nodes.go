package graph

import (
	"context"
	"strconv"

	"github.com/99designs/gqlgen/graphql"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/graph/model"
	"isthmus.dev/isthmus/graph/transport"
)

// Nodes finds objects by their IDs. One that cannot be read is null with an error;
// the others are answered.
func (q query) Nodes(ctx context.Context, ids []string) ([]model.Node, error) {
	if len(ids) > maxPage {
		return nil, transport.BadArgument("ids", "there are %d IDs, at most %d are allowed; split the request", len(ids), maxPage)
	}
	all := make([]model.Node, len(ids))
	for i, id := range ids {
		found, err := q.Node(ctx, id)
		if err != nil {
			graphql.AddError(graphql.WithPathContext(ctx, graphql.NewPathWithIndex(i)), err)
			continue
		}
		all[i] = found
	}
	return all, nil
}

// gatewayNamed finds a gateway of a network by its ID.
func gatewayNamed(from *federation.Snapshot, id string) model.Node {
	_, name, _ := model.ParseID(id)
	network, _ := model.GatewayKey(name)
	of, ok := from.Network(network)
	if !ok {
		return nil
	}
	for _, gateway := range (model.Network{Of: of}).Gateways() {
		if gateway.ID() == id {
			return gateway
		}
	}
	return nil
}

// endpointNamed finds an endpoint of a service by its ID.
func endpointNamed(from *federation.Snapshot, id string) model.Node {
	_, name, _ := model.ParseID(id)
	of, ok := from.Service(model.ServiceKey(name))
	if !ok {
		return nil
	}
	for endpoint := range (model.Service{From: from, Of: of}).Endpoints {
		if endpoint.ID() == id {
			return endpoint
		}
	}
	return nil
}

// revisionNamed finds a revision of the configuration, which the store knows.
func revisionNamed(ctx context.Context, from History, name string) (model.Node, error) {
	revision, err := strconv.ParseInt(name, 10, 64)
	if err != nil || revision < 1 || model.Revision(revision) != name {
		return nil, nil
	}
	if from == nil {
		return nil, errNoConfig
	}
	records, err := from.Records(ctx, revision+1, 1)
	if err != nil || len(records) == 0 || records[0].Revision != revision {
		return nil, shown(err)
	}
	return model.NewConfigRevision(records[0]), nil
}
