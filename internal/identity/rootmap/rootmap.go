// Package rootmap writes the roots of the mesh into the ConfigMap istio-ca-root-cert of the
// namespaces of attached clusters, where Istio's injection has pods look for them (ADR 149). It
// leaves what somebody else wrote alone, unless it is told to overwrite it.
package rootmap

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/kube/listwatch"
	"isthmus.dev/isthmus/internal/retry"
	"isthmus.dev/isthmus/internal/wake"
)

// Roots are the roots of each trust domain; an authority.Trust has them.
type Roots interface {
	Bundles() map[string][]byte
	Changed() <-chan struct{}
}

// Metrics shows how the namespaces of a cluster are. Its method must not block.
type Metrics interface {
	// RootMaps is how many namespaces have the hub's roots, and how many have what somebody
	// else wrote.
	RootMaps(cluster federation.ClusterID, have, others int)
}

type unmeasured struct{}

func (unmeasured) RootMaps(federation.ClusterID, int, int) {}

const (
	// pace is between two writes to one cluster.
	pace = 100 * time.Millisecond
	// The pauses after a write that failed, or that somebody undid.
	firstPause, longestPause = time.Second, 10 * time.Minute
	// patience is how long one write may take.
	patience = 10 * time.Second
)

// limits are what a cluster may make the hub keep.
var limits = federation.Limits{Objects: 50_000, Pages: 200, Bytes: 64 << 20}

// Options are what a Writer works with. Roots and TrustDomain are required.
type Options struct {
	Roots       Roots
	TrustDomain string // whose roots are written
	Metrics     Metrics
	Logger      *slog.Logger // nil: slog's default
}

// Writer writes the ConfigMaps of clusters.
type Writer struct{ o Options }

// New makes a writer.
func New(o Options) *Writer {
	if o.Metrics == nil {
		o.Metrics = unmeasured{}
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return &Writer{o}
}

// Follow keeps the ConfigMaps of the cluster up to date until the context ends, while the
// cluster proves that it is the known one.
func (w *Writer) Follow(ctx context.Context, id federation.ClusterID, cluster *listwatch.Cluster, mayOverwrite bool) {
	f := &rootWriter{
		options: w.o, log: w.o.Logger.With(slog.String("cluster", string(id))), id: id, cluster: cluster, mayOverwrite: mayOverwrite,
		wake: wake.New(), dirty: map[string]bool{}, pauses: retry.Pauses[string]{First: firstPause, Longest: longestPause},
		told: map[string]bool{},
	}
	budget := listwatch.NewBudget(limits, nil)
	spaces := listwatch.Namespaces(cluster)
	maps := listwatch.Of("configmaps", cluster.Client().CoreV1().ConfigMaps(""), read, found.size)
	maps.Fields, maps.Reconcile = listwatch.Named(Name), true
	f.spaces = listwatch.NewMirror(budget.Share(), spaces, listwatch.Namespace.Key, f, f.following)
	f.maps = listwatch.NewMirror(budget.Share(), maps, found.key, f, f.following)
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { f.spaces.Follow(ctx, cluster, spaces) })
	all.Go(func() { f.maps.Follow(ctx, cluster, maps) })
	f.run(ctx)
}

// content is what the ConfigMaps should have; empty: nothing is known yet.
func (o Options) content() string { return string(o.Roots.Bundles()[o.TrustDomain]) }
