// Package serviceimport writes a ServiceImport (KEP-1645) for each exported service into the
// attached clusters that ask for it (ADR 168). It leaves what somebody else wrote alone.
package serviceimport

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/kube/listwatch"
	"isthmus.dev/isthmus/internal/retry"
	"isthmus.dev/isthmus/internal/wake"
)

// Snapshots has the latest snapshot.
type Snapshots interface {
	Latest() *federation.Snapshot
}

// Leader says whether this hub is the one of several that writes.
type Leader interface{ Leads() bool }

// Meter counts writes.
type Meter interface {
	ImportWrote(cluster federation.ClusterID)
	ImportFailed(cluster federation.ClusterID, reason string)
}

const (
	// pace is between two writes to one cluster.
	pace = 100 * time.Millisecond
	// The pauses after a write that failed, or that somebody undid.
	firstPause, longestPause = time.Second, 10 * time.Minute
	// patience is how long one write may take.
	patience = 10 * time.Second
	// again is how often a hub looks whether it is the leader now.
	again = 5 * time.Second
	// grace is how long a service must not be exported before its imports are deleted.
	grace = 30 * time.Second
)

// limits are what a cluster may make the hub keep of its ServiceImports, and of its namespaces.
var limits = federation.Limits{Objects: 20_000, Pages: 100, Bytes: 32 << 20}

// Options are what a Writer works with. Snapshots and Ready are required.
type Options struct {
	Snapshots Snapshots
	// Ready is closed when the snapshot has the clusters and the configuration. Before, a
	// service that it lacks may be exported.
	Ready  <-chan struct{}
	Leader Leader        // nil: this hub writes
	Meter  Meter         // nil: nothing is counted
	Grace  time.Duration // 0: 30 s
	Logger *slog.Logger  // nil: slog's default
}

// Writer writes the ServiceImports of clusters.
type Writer struct{ o Options }

// New makes a writer.
func New(o Options) *Writer {
	o.Grace, o.Logger = cmp.Or(o.Grace, grace), cmp.Or(o.Logger, slog.Default())
	return &Writer{o}
}

// Follow keeps the ServiceImports of the cluster up to date until the context ends, while the
// cluster proves that it is the known one.
func (w *Writer) Follow(ctx context.Context, id federation.ClusterID, cluster *listwatch.Cluster) {
	select {
	case <-w.o.Ready:
	case <-ctx.Done():
		return
	}
	f := &importWriter{
		options: w.o, id: id, log: w.o.Logger.With(slog.String("cluster", string(id))), cluster: cluster, wake: wake.New(),
		wanted: map[listwatch.Key]Import{}, pauses: retry.Pauses[listwatch.Key]{First: firstPause, Longest: longestPause},
		missing: map[listwatch.Key]time.Time{}, told: map[listwatch.Key]bool{}, wrote: map[step]string{},
	}
	imports, spaces := importsOf(cluster), listwatch.Namespaces(cluster)
	f.imports = listwatch.NewMirror(listwatch.NewBudget(limits, nil).Share(), imports, found.key, f, f.following())
	f.spaces = listwatch.NewMirror(listwatch.NewBudget(limits, nil).Share(), spaces, listwatch.Namespace.Key, f, f.following())
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { f.imports.Follow(ctx, cluster, imports) })
	all.Go(func() { f.spaces.Follow(ctx, cluster, spaces) })
	f.run(ctx)
}
