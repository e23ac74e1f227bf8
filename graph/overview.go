package graph

import (
	"context"
	"slices"
	"strconv"
	"sync"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/graph/model"
)

// overviews has the numbers of a start page that take a look at every service or
// object. They are counted once for each change of the mesh, however many pages ask.
type overviews struct {
	services memo[*federation.Snapshot, model.ServiceNumbers]
	objects  memo[objectsView, objectNumbers]
}

func newOverviews() *overviews { return &overviews{} }

// objectNumbers are those of configuration objects, and which objects are counted.
type objectNumbers struct {
	model.ConfigObjectOverview
	isRejected map[federation.ObjectKey]bool
	findings   map[federation.ObjectKey][]string // the codes of those that have some, each once
}

// fits reports whether the object is one that the filter asks for by what is counted.
func (n objectNumbers) fits(key federation.ObjectKey, filter *model.ConfigObjectFilter) bool {
	codes := n.findings[key]
	return (filter.Rejected == nil || *filter.Rejected == n.isRejected[key]) &&
		(filter.HasFindings == nil || *filter.HasFindings == (len(codes) > 0)) &&
		(filter.FindingCode == nil || slices.Contains(codes, *filter.FindingCode))
}

// objectsView is what the numbers of configuration objects depend on.
type objectsView struct {
	config   *config.View
	snapshot *federation.Snapshot
	fleet    *fleet.Value
}

// memo keeps the latest value that was computed. Callers wait for one that is being
// computed, so that at most one is at a time.
type memo[K comparable, V any] struct {
	mu    sync.Mutex
	known bool
	key   K
	value V
}

func (m *memo[K, V]) of(key K, compute func() V) V {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.known || m.key != key {
		m.value, m.key, m.known = compute(), key, true
	}
	return m.value
}

// Overview counts what the mesh has.
func (q query) Overview(ctx context.Context) (*model.Overview, error) {
	from := snapshot(ctx)
	numbers := q.overviews.numbers(from)
	return &model.Overview{
		SnapshotVersion: strconv.FormatUint(from.Version(), 10), Clusters: model.NewClusterOverview(from),
		Proxies:  model.NewProxyOverview(connected(ctx).Proxies()),
		Services: numbers.Services, Endpoints: numbers.Endpoints, Gateways: model.NewGatewayOverview(from),
	}, nil
}

func (o *overviews) numbers(from *federation.Snapshot) model.ServiceNumbers {
	return o.services.of(from, func() model.ServiceNumbers { return model.NewServiceNumbers(from) })
}

type overviewResolver struct{ *resolver }

// ConfigObjects counts the objects in use; none on a hub without configuration.
func (r overviewResolver) ConfigObjects(ctx context.Context, _ *model.Overview) (model.ConfigObjectOverview, error) {
	return r.overviews.objectNumbers(ctx, r.Config).ConfigObjectOverview, nil
}

func (o *overviews) objectNumbers(ctx context.Context, of Config) objectNumbers {
	view, err := configured(ctx)
	if err != nil {
		return objectNumbers{ConfigObjectOverview: model.ConfigObjectOverview{ByFindingCode: []model.FindingCodeCount{}}}
	}
	key := objectsView{view, snapshot(ctx), connected(ctx)}
	return o.objects.of(key, func() objectNumbers { return countObjects(of, key) })
}

func countObjects(of Config, in objectsView) objectNumbers {
	out := objectNumbers{isRejected: map[federation.ObjectKey]bool{}, findings: map[federation.ObjectKey][]string{}}
	byCode := model.FindingCounts{}
	for o := range in.config.State.Objects() {
		if kind.Internal(o.Key.Of()) {
			continue
		}
		out.Total++
		if of.Deliveries != nil {
			if d, known := of.Deliveries.Delivery(in.snapshot, in.fleet, o.Key); known && d.Rejected > 0 {
				out.isRejected[o.Key] = true
			}
		}
		if of.Findings == nil {
			continue
		}
		if codes := byCode.Add(of.Findings(in.snapshot, in.fleet, o.Key)); len(codes) > 0 {
			out.findings[o.Key] = codes
		}
	}
	out.Rejected, out.WithFindings, out.ByFindingCode = len(out.isRejected), len(out.findings), byCode.All()
	return out
}
