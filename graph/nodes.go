package graph

import (
	"context"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"

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
	of := readRevisions(ctx, q.Config.History, revisionsIn(ids))
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

// revisionsIn are the revisions that IDs name.
func revisionsIn(ids []string) (all []int64) {
	for _, id := range ids {
		if kind, name, _ := model.ParseID(id); kind == model.KindRevision {
			if revision, ok := revisionOf(name); ok {
				all = append(all, revision)
			}
		}
	}
	return all
}

func readRevisions(ctx context.Context, from History, wanted []int64) revisions {
	of := revisions{found: map[int64]config.Record{}}
	all := slices.Compact(slices.Sorted(slices.Values(wanted)))
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
	found, err := of.at(revision)
	if found == nil {
		return nil, err
	}
	return *found, nil
}

func (of revisions) at(revision int64) (*model.ConfigRevision, error) {
	record, ok := of.found[revision]
	if !ok {
		return nil, of.err
	}
	shown := model.NewConfigRevision(record)
	return &shown, nil
}

// readRecords are the revisions that an operation has read. Pages within pages ask for the same ones, and a revision with a
// thousand objects takes a tenth of a second.
type readRecords struct {
	mu    sync.Mutex // held while the store is read: the next page of the operation may need no more than that
	of    revisions
	asked map[int64]bool // also those that the store does not have
}

// read reads what was not read before. A store that does not answer is not asked again by the operation.
func (c *readRecords) read(ctx context.Context, from History, wanted []int64) revisions {
	c.mu.Lock()
	defer c.mu.Unlock()
	lacking := slices.DeleteFunc(slices.Clone(wanted), func(revision int64) bool { return c.asked[revision] })
	if len(lacking) > 0 && c.of.err == nil {
		read := readRevisions(ctx, from, lacking)
		maps.Copy(c.of.found, read.found)
		c.of.err = read.err
		for _, revision := range lacking {
			c.asked[revision] = true
		}
	}
	got := revisions{found: map[int64]config.Record{}, err: c.of.err}
	for _, revision := range wanted {
		if record, ok := c.of.found[revision]; ok {
			got.found[revision] = record
		}
	}
	return got
}

// reading reads the revisions together, when one of them is first asked for.
func reading(r *resolver, all ...int64) model.Recorded {
	var once sync.Once
	var of revisions
	return func(ctx context.Context, revision int64) (*model.ConfigRevision, error) {
		seen := seen(ctx)
		if seen.isEvent {
			return nil, nil
		}
		once.Do(func() { of = seen.records.read(ctx, r.Config.History, all) })
		return of.at(revision)
	}
}

// readTogether has the revisions of the items of a page read together. recorded is the revision of an item, and where
// it keeps how that is read.
func readTogether[T any](r *resolver, of model.Page[T], recorded func(*T) (int64, *model.Recorded)) model.Page[T] {
	return model.Together(of, func(all []T) {
		revisions := make([]int64, len(all))
		for i := range all {
			revisions[i], _ = recorded(&all[i])
		}
		read := reading(r, revisions...)
		for i := range all {
			_, kept := recorded(&all[i])
			*kept = read
		}
	})
}

// recorded has the revisions of the objects of a page read together.
func recorded(r *resolver, of model.Page[model.ConfigObject]) model.Page[model.ConfigObject] {
	return readTogether(r, of, func(o *model.ConfigObject) (int64, *model.Recorded) { return o.Of.Revision, &o.Recorded })
}

// ConfigRevision is the revision in which the object last changed; nil for one of another source than the
// store of record, which is the first.
func (r objectResolver) ConfigRevision(ctx context.Context, of *model.ConfigObject) (*model.ConfigRevision, error) {
	view, err := configured(ctx)
	if err != nil || len(view.Sources) == 0 || of.SourceName != view.Sources[0].Name {
		return nil, err
	}
	read := of.Recorded
	if read == nil {
		read = reading(r.resolver, of.Of.Revision)
	}
	return read(ctx, of.Of.Revision)
}
