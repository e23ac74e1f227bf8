package graph

import (
	"context"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/99designs/gqlgen/graphql"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
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
	of := readRevisions(ctx, q.Config.History, ids)
	for i, id := range ids {
		found, err := q.node(ctx, id, of)
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

// revisions are those of the configuration that IDs name, which only the store knows. All
// of an operation are read together: reading one takes the store as long as reading many.
type revisions struct {
	found map[int64]config.Record
	err   error
}

func readRevisions(ctx context.Context, from History, ids []string) revisions {
	wanted := map[int64]bool{}
	for _, id := range ids {
		if kind, name, _ := model.ParseID(id); kind == model.KindRevision {
			if revision, ok := revisionOf(name); ok {
				wanted[revision] = true
			}
		}
	}
	of := revisions{found: map[int64]config.Record{}}
	all := slices.Sorted(maps.Keys(wanted))
	if len(all) > 0 && from == nil {
		of.err = errNoConfig
		return of
	}
	below := int64(math.MaxInt64) // read from there on
	for _, revision := range slices.Backward(all) {
		if revision >= below {
			continue
		}
		records, err := from.Records(ctx, revision+1, int(min(recordsAtOnce, revision-all[0]+1)))
		if err != nil || len(records) == 0 {
			of.err = shown(err)
			return of
		}
		for _, r := range records {
			of.found[r.Revision], below = r, r.Revision
		}
	}
	return of
}

func revisionOf(name string) (revision int64, ok bool) {
	revision, err := strconv.ParseInt(name, 10, 64)
	return revision, err == nil && revision > 0 && revision < math.MaxInt64 && model.Revision(revision) == name
}

func (of revisions) named(name string) (model.Node, error) {
	revision, _ := revisionOf(name)
	if record, ok := of.found[revision]; ok {
		return model.NewConfigRevision(record), nil
	}
	return nil, of.err
}
