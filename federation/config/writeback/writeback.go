// Package writeback writes the status of objects into the clusters whose custom resources
// and Ingresses are configuration, where MeshSettings say so (ADR 144). What is written is a
// function of a snapshot (writeback/wanted). One of several hubs writes.
package writeback

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/crd"
	"isthmus.dev/isthmus/federation/config/gatewayapi"
	"isthmus.dev/isthmus/federation/config/writeback/wanted"
	"isthmus.dev/isthmus/internal/kube/listwatch"
	"isthmus.dev/isthmus/internal/wake"
)

// Leader says whether this hub is the one that writes.
type Leader interface {
	Leads() bool
	Changed() <-chan struct{}
}

// Meter counts writes.
type Meter interface {
	StatusWrote(cluster string)
	StatusFailed(cluster, reason string)
}

// Reporter shows why status of a cluster is not written; the sources of the objects do.
type Reporter interface {
	StatusTrouble(id federation.ClusterID, problems []config.Problem)
}

// Options say what status is computed from. Zero values have the defaults named here.
type Options struct {
	Snapshots interface{ Latest() *federation.Snapshot }
	Leader    Leader
	Meter     Meter
	Pace      time.Duration // the least time between two rounds; 0: 1 s
	Pause     time.Duration // the first of those that double, after a failure and between writes of one object; 0: 1 s
	Logger    *slog.Logger
}

// Parts are what statuses are computed from beside snapshots, and who shows what is wrong.
type Parts struct {
	Views                interface{ Latest() *config.View }
	Gateways             gatewayapi.Statuses // calls Translated
	Proxies              Proxies
	Resources, Ingresses Reporter // the sources of custom resources and of Ingresses
}

// Proxies is what is known of proxies, and what is wrong with objects.
type Proxies interface {
	// Changed is closed when the answers of the others may be different.
	Changed() <-chan struct{}
	// News are what is different since they were asked for last; one reader asks.
	News() wanted.News
	// Findings are those of an object of the snapshot, of which the Reader notes what is read.
	Findings(of *federation.Snapshot, r *federation.Reader, key federation.ObjectKey) []wanted.Finding
	Delivered(of *federation.Snapshot, keys ...federation.ObjectKey) (wanted.Delivery, bool)
	OtherHubs() int
	// Follow has the hub look for a Secret until done is called, whether proxies need it or not.
	Follow(cluster federation.ClusterID, secret gatewayapi.Secret) (done func())
	// MissingSecret says why gateways of the cluster lack a Secret that is followed; "": they do
	// not, or it is not known.
	MissingSecret(r *federation.Reader, cluster federation.ClusterID, secret gatewayapi.Secret) (why string)
}

// Limits of one round, and of one cluster.
const (
	mostLooked      = 1000            // objects of which the status is computed in a round
	mostBatch       = 50              // writes into one cluster in a round
	writesPerSecond = 20              // into one cluster
	writesAtOnce    = 100             // into one cluster
	batchTime       = 5 * time.Second // for the writes of one round
)

// Writer writes status. It is a crd.Originals, and follows clusters.
type Writer struct {
	o    Options
	wake wake.Signal

	mu         sync.Mutex
	records    map[ref]*record
	dirty      map[ref]struct{}
	troubled   map[ref]struct{}       // that may be refused or contested
	translated []federation.ObjectKey // since Run looked
	clusters   map[federation.ClusterID]*target
	classes    map[federation.ClusterID]map[string]string // controllers of IngressClasses, by name; replaced, never changed

	// Of Run alone.
	parts  Parts
	left   []ref // of a look at all objects
	follow *dependents
}

// ref names an object of a cluster.
type ref struct {
	cluster federation.ClusterID
	key     federation.ObjectKey // in its cluster: it names none
}

// record is an object, and what was written into it.
type record struct {
	*crd.Original
	notBefore time.Time     // of the next write
	pause     time.Duration // between two writes, while they repeat
	wrote     time.Time
	undone    int    // how often the same status was written again
	refused   *block // by the API server; nil: it was not
	body      string // that was written last
}

// target is a cluster that is followed.
type target struct {
	clusters []*listwatch.Cluster // the latest is used
	rate     *rate.Limiter
	blocked  map[string]*block // by resource; "" is the cluster
	told     map[bool]int      // how many problems its sources were told of; the key: of Ingresses
}

// New makes a writer.
func New(o Options) *Writer {
	o.Pace, o.Pause = cmp.Or(o.Pace, time.Second), cmp.Or(o.Pause, time.Second)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return &Writer{
		o: o, wake: wake.New(), follow: newDependents(), records: map[ref]*record{}, dirty: map[ref]struct{}{},
		troubled: map[ref]struct{}{},
		clusters: map[federation.ClusterID]*target{}, classes: map[federation.ClusterID]map[string]string{},
	}
}

// Translated has Run look at objects again of which the Gateway API may tell something else.
func (w *Writer) Translated(keys []federation.ObjectKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.translated = append(w.translated, keys...)
	w.wake.Notify()
}

// Follow has the objects of a cluster written by this client until the context ends.
func (w *Writer) Follow(ctx context.Context, id federation.ClusterID, cluster *listwatch.Cluster) {
	if cluster.Dynamic() == nil {
		return
	}
	w.join(id, cluster)
	<-ctx.Done()
	w.leave(id, cluster)
}

func (w *Writer) join(id federation.ClusterID, cluster *listwatch.Cluster) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.clusters[id]
	if t == nil {
		t = &target{rate: rate.NewLimiter(writesPerSecond, writesAtOnce), told: map[bool]int{}}
		w.clusters[id] = t
	}
	t.clusters, t.blocked = append(t.clusters, cluster), map[string]*block{}
	w.touchAll(id)
}

func (w *Writer) leave(id federation.ClusterID, cluster *listwatch.Cluster) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.clusters[id]
	for i, c := range t.clusters {
		if c == cluster {
			t.clusters = append(t.clusters[:i:i], t.clusters[i+1:]...)
			break
		}
	}
}

// touchAll has all objects of a cluster looked at; the caller holds mu.
func (w *Writer) touchAll(id federation.ClusterID) {
	for at := range w.records {
		if at.cluster == id {
			w.dirty[at] = struct{}{}
		}
	}
	w.wake.Notify()
}

// Read is part of crd.Originals.
func (w *Writer) Read(o *crd.Original) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := ref{o.Cluster, o.Key}
	switch {
	case o.Key.Of() == federation.IngressClassKind:
		w.readClass(o)
		return
	case o.Key.Of() != federation.IngressKind && !wanted.Writes(o.Key.Of()):
		return
	}
	if r := w.records[at]; r == nil || r.UID != o.UID {
		w.records[at] = &record{Original: o}
	} else if !older(o.Version, r.Version) {
		r.Original = o
	}
	w.dirty[at] = struct{}{}
	w.wake.Notify()
}

// Deleted is part of crd.Originals.
func (w *Writer) Deleted(cluster federation.ClusterID, key federation.ObjectKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if key.Of() == federation.IngressClassKind {
		w.changeClasses(cluster, func(of map[string]string) { delete(of, key.Name) })
		return
	}
	delete(w.records, ref{cluster, key})
	w.dirty[ref{cluster, key}] = struct{}{} // Run forgets what it read
	w.wake.Notify()
}
