package crd

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/flowcontrol"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/kube/listwatch"
	"isthmus.dev/isthmus/internal/retry"
	"isthmus.dev/isthmus/internal/wake"
)

// Lists and watches of one cluster that may begin in a second, and at once.
const (
	triesPerSecond = 20
	triesAtOnce    = 200
)

// clusterReader reads one cluster with one client. Several may read a cluster while its
// credentials are rotated: of each place, the latest that listed it counts.
type clusterReader struct {
	of      *Source
	id      federation.ClusterID
	cluster *listwatch.Cluster
	turn    uint64
	budget  *listwatch.Budget
	tries   flowcontrol.RateLimiter
	relook  wake.Signal
	pauses  retry.Backoff
	running map[place]running
	ended   sync.WaitGroup
}

// running is a list and its watch.
type running struct {
	resource apischema.GroupVersionResource
	status   bool
	to       *placeSink
	stop     context.CancelFunc
}

// Follow reads a cluster, as far as the settings want, until the context ends. On trouble
// what was read stays.
func (s *Source) Follow(ctx context.Context, id federation.ClusterID, cluster *listwatch.Cluster) {
	if cluster.Dynamic() == nil {
		return
	}
	f := &clusterReader{
		of: s, id: id, cluster: cluster, turn: s.nextTurn(), budget: listwatch.NewBudget(s.o.Limits, nil),
		tries: flowcontrol.NewTokenBucketRateLimiter(triesPerSecond, triesAtOnce), relook: wake.New(),
		pauses: retry.Backoff{First: time.Second, Longest: s.o.Look}, running: map[place]running{},
	}
	ctx, cancel := context.WithCancel(ctx)
	defer f.ended.Wait()
	defer cancel()
	for ctx.Err() == nil {
		w, changed := s.selectionOf(id)
		retry.Await(ctx, f.round(ctx, w), changed, f.relook)
	}
}

func (s *Source) nextTurn() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns++
	return s.turns
}

// selectionOf is what is to be read of a cluster, nil for nothing. A cluster that did not prove
// who it is, such as one that is attached under two IDs, is not read.
func (s *Source) selectionOf(id federation.ClusterID) (w *selection, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.clusters[id]; c != nil && c.identity != "" {
		w = c.want
	}
	return w, s.changed
}

// round looks at what the cluster serves, and reads of it what is wanted. It returns the
// pause until the next round, which begins earlier when the settings or the clusters change, or a kind seems to be gone.
func (f *clusterReader) round(ctx context.Context, w *selection) time.Duration {
	if w == nil {
		f.keepOnly(nil)
		return retry.Forever
	}
	found, err := f.discover(ctx, w)
	if ctx.Err() != nil {
		return 0
	}
	f.discovered(w, found, err)
	if err != nil {
		return f.pauses.Next()
	}
	f.pauses.Reset()
	f.keepOnly(found.places)
	for p, at := range found.places {
		if _, runs := f.running[p]; !runs {
			f.start(ctx, p, at)
		}
	}
	return f.of.o.Look
}

// keepOnly ends what reads other places than these, or another version, or places whose
// objects were dropped meanwhile and have to be listed again.
func (f *clusterReader) keepOnly(places map[place]served) {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	for p, r := range f.running {
		if at, wanted := places[p]; !wanted || at.resource != r.resource || at.status != r.status || f.dropped(p, r.to) {
			r.stop()
			delete(f.running, p)
		}
	}
}

// dropped reports whether what was listed of a place is not kept any more; the caller
// holds mu.
func (f *clusterReader) dropped(p place, to *placeSink) bool {
	if to.table == nil {
		return false // not listed yet
	}
	c := f.of.clusters[f.id]
	return c == nil || c.tables[p] != to.table
}

// start reads one place until that is ended.
func (f *clusterReader) start(ctx context.Context, p place, at served) {
	ctx, stop := context.WithCancel(ctx)
	to := &placeSink{by: f, to: f.of, place: p, share: f.budget.Share(), name: at.resource.GroupResource().String()}
	f.running[p] = running{at.resource, at.status, to, stop}
	r := listwatch.Of(to.name, f.cluster.Dynamic().Resource(at.resource).Namespace(p.namespace), func(in *unstructured.Unstructured) *item {
		return f.reread(p, at, in)
	}, (*item).size)
	r.Tries, r.Reconcile, r.Doubtful = f.tries, true, to.doubtful
	r.Fault = func(k listwatch.Key, cause any, stack []byte) *item {
		return f.of.fault(f.id, at.kind, k, cause, stack)
	}
	f.ended.Go(func() {
		listwatch.Follow(ctx, f.cluster, r, to.share, to)
		to.share.Replaced(federation.Usage{})
	})
}

// reread reads an object, unless it is the one that was read before.
func (f *clusterReader) reread(p place, at served, in *unstructured.Unstructured) *item {
	f.of.mu.Lock()
	var before *item
	if c := f.of.clusters[f.id]; c != nil && c.tables[p] != nil {
		before = c.tables[p].items[listwatch.Key{Namespace: in.GetNamespace(), Name: in.GetName()}]
	}
	f.of.mu.Unlock()
	if before != nil && before.uid == in.GetUID() && before.version == in.GetResourceVersion() && before.version != "" &&
		(before.state != nil) == at.status {
		return before
	}
	read := f.of.item(at.kind, in)
	if at.status {
		read.state = stateOf(at.resource, in)
		if len(read.problems) > 0 {
			read.state.refused(in)
		}
	}
	return read
}
