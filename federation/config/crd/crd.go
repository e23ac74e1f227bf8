// Package crd is a read-only source of configuration: custom resources of attached
// Kubernetes clusters, of the clusters, namespaces and kinds that MeshSettings name
// (ADR 116). It reads them through internal/kube/listwatch. An object that the hub's
// schemas reject is reported, and its last valid form stays.
package crd

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/internal/wake"
)

// Schema validates objects and fills in their defaults; kind.Schema does. It is used by
// several goroutines at once. An object that it neither gives nor rejects is of no use.
type Schema interface {
	Admit(wanted map[string]any) (schema.Admitted, []schema.Problem)
}

// Options say what is read and how. Zero fields from Limits on have the defaults named
// here.
type Options struct {
	Kinds     []schema.Kind // that the hub knows
	Ignored   []schema.Kind // whose objects are reported where all kinds are read: they have no effect
	Schema    Schema
	Snapshots interface{ Latest() *federation.Snapshot }
	Limits    federation.Limits // of what is read of one cluster
	Dir       string            // where what was read is kept for the next start; empty: nowhere
	Look      time.Duration     // between two looks at the kinds that a cluster serves; 0: 30 s
	Patience  time.Duration     // how long the first Update waits for clusters; 0: 10 s
	Logger    *slog.Logger
	// Everywhere reports whether the kinds are read in all namespaces of every attached
	// cluster, whatever sources of the settings say, and whether their status is written; the
	// settings may be nil. Nil: sources say what is read.
	Everywhere func(*federation.MeshSettings) (wanted, status bool)
	// Off: no cluster is read. MeshSettings that name some are reported.
	Off       bool
	Originals Originals // is notified of the objects whose status is written; nil: there is none
}

// withheld are kinds that no cluster can give: its objects would attach clusters, or say
// which clusters are read.
var withheld = []federation.Kind{federation.ClusterKind, federation.MeshSettingsKind}

// Source is a config.Source. Follow reads the clusters, Run gives what was read.
type Source struct {
	o     Options
	kinds map[federation.Kind]schema.Kind // that are given
	views interface{ Latest() *config.View }
	wake  wake.Signal
	cache *diskCache

	mu       sync.Mutex
	plan     plan
	clusters map[federation.ClusterID]*cluster // that are attached and read
	order    []*cluster                        // by precedence
	changed  chan struct{}                     // closed when plan or clusters change
	touched  map[federation.ObjectKey]struct{}
	hidden   map[federation.ObjectKey]config.Problem
	stale    bool // the problems may be others
	turns    uint64

	// Of Run alone.
	given config.Given
	said  []config.Problem
}

// New makes a source, which needs Settings before it runs.
func New(o Options) *Source {
	o.Look, o.Patience = cmp.Or(o.Look, 30*time.Second), cmp.Or(o.Patience, 10*time.Second)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	s := &Source{
		o: o, kinds: map[federation.Kind]schema.Kind{}, wake: wake.New(), clusters: map[federation.ClusterID]*cluster{},
		changed: make(chan struct{}), touched: map[federation.ObjectKey]struct{}{}, hidden: map[federation.ObjectKey]config.Problem{},
	}
	s.cache = &diskCache{dir: o.Dir, of: s, wake: wake.New(), gone: map[federation.ClusterID]struct{}{}}
	for _, k := range o.Kinds {
		if !slices.Contains(withheld, k.Kind) {
			s.kinds[k.Kind] = k
		}
	}
	return s
}

// Settings names the configuration whose MeshSettings say what is read.
func (s *Source) Settings(views interface{ Latest() *config.View }) { s.views = views }

// Kinds is part of config.Source.
func (s *Source) Kinds() []federation.Kind {
	var all []federation.Kind
	for _, k := range s.o.Kinds {
		if _, gives := s.kinds[k.Kind]; gives {
			all = append(all, k.Kind)
		}
	}
	return all
}

// Run is part of config.Source. It runs once at a time. The first Update waits until the
// settings are known and each cluster that they name was read or is in trouble, or for
// Options.Patience.
func (s *Source) Run(ctx context.Context, to config.Sink) error {
	if s.o.Dir != "" {
		var saving sync.WaitGroup
		saving.Go(func() { s.cache.save(ctx) })
		defer saving.Wait()
	}
	first, waited := true, false
	var patience *time.Timer
	var over <-chan time.Time
	s.said = nil
	for {
		view, snapshot := s.views.Latest(), s.o.Snapshots.Latest()
		known, answered := s.updatePlan(view, snapshot)
		if known && patience == nil {
			patience = time.NewTimer(s.o.Patience)
			defer patience.Stop()
			over = patience.C
		}
		switch {
		case first && known && (answered || waited):
			s.take()
			to.Update(config.Update{Revision: s.given.Revision, Full: true, Events: s.given.Everything()})
			first = false
		case !first:
			if events := s.take(); len(events) > 0 {
				to.Update(config.Update{Revision: s.given.Revision, Events: events})
			}
		}
		s.complain(to, first)
		select {
		case <-s.wake:
		case <-view.Superseded():
		case <-snapshot.Superseded():
		case <-over:
			waited = true
		case <-ctx.Done():
			return nil
		}
	}
}

// updatePlan applies the settings and which clusters are attached. It reports whether the
// settings are known, and whether every cluster that they name was read or is in trouble.
func (s *Source) updatePlan(view *config.View, snapshot *federation.Snapshot) (known, answered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := view.SyncedFor(federation.MeshSettingsKind) && s.plan.read(view.State, snapshot, &s.o, s.kinds)
	answered = true
	for id, w := range s.plan.wanted {
		of := readable(snapshot, id)
		if of == nil {
			answered = false
			continue
		}
		c := s.clusters[id]
		if c == nil {
			c = newCluster(id)
			s.clusters[id], changed = c, true
		}
		other, spoke := c.observe(of)
		changed, s.stale = changed || other, s.stale || spoke
		if c.want != w {
			s.touch(c.keys()...) // they may be for other proxies than before
			c.want, changed = w, true
			s.touch(c.narrow()...)
			s.touch(c.keys()...)
			c.unsaved.whole = true
			s.cache.wake.Notify()
		}
		s.cache.restore(c)
		answered = answered && (c.complete || c.inTrouble())
	}
	for id, c := range s.clusters {
		if s.plan.wanted[id] == nil || readable(snapshot, id) == nil {
			s.touch(c.keys()...)
			delete(s.clusters, id)
			s.cache.gone[id] = struct{}{}
			s.cache.wake.Notify()
			changed = true
		}
	}
	if changed {
		s.reorder()
		s.stale = true
		close(s.changed)
		s.changed = make(chan struct{})
	}
	return s.plan.known, answered
}

// readable is the cluster if it is attached and has custom resources, else nil.
func readable(snapshot *federation.Snapshot, id federation.ClusterID) *federation.Cluster {
	if of, attached := snapshot.Cluster(id); attached && of.Spec.Provider.HasObjects() {
		return of
	}
	return nil
}

// reorder sorts the clusters by precedence; the caller holds mu.
func (s *Source) reorder() {
	var order []*cluster
	for _, c := range s.clusters {
		order = append(order, c)
	}
	slices.SortFunc(order, func(a, b *cluster) int {
		return cmp.Or(cmp.Compare(a.precedence, b.precedence), cmp.Compare(a.id, b.id))
	})
	if slices.Equal(order, s.order) {
		return
	}
	s.order = order
	if len(order) > 1 {
		for _, c := range order {
			s.touch(c.keys()...)
		}
	}
}

// touch notes objects that may be others; the caller holds mu.
func (s *Source) touch(keys ...federation.ObjectKey) {
	for _, key := range keys {
		s.touched[key] = struct{}{}
	}
}
