package hub

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/federation/config/etcd"
	"isthmus.dev/isthmus/federation/config/file"
	configkind "isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/graph"
	"isthmus.dev/isthmus/internal/metrics"
)

// mesh is the mesh's configuration, joined: where it comes from, what is in
// force, and how it is changed.
type mesh struct {
	stored *etcd.Config
	views  *config.Aggregate
	engine *apply.Engine
	kinds  []schema.Kind
	epoch  string

	snapshots *federation.Aggregate
	logger    *slog.Logger
}

// meshParts are what a mesh is joined from.
type meshParts struct {
	store     *etcd.Store
	snapshots *federation.Aggregate
	hub       federation.ClusterID
	configDir string // empty: none
	logger    *slog.Logger
	counts    *metrics.Config
}

// configSources are the sources of configuration after the store of record, in
// order of precedence; a new one is one paragraph here (ADR 0015).
func configSources(p meshParts, set *schema.Set) []config.Named {
	var all []config.Named
	if p.configDir != "" {
		var kinds []federation.Kind
		for _, k := range set.Kinds() {
			kinds = append(kinds, k.Kind)
		}
		folder := file.New(file.Options{Dir: p.configDir, Kinds: kinds, Schema: configkind.Schema{Set: set}, Logger: p.logger})
		all = append(all, config.Named{Name: "FILE", Source: folder})
	}
	return all
}

func joinMesh(p meshParts) (*mesh, error) {
	set, err := schema.Load()
	if err != nil {
		return nil, fmt.Errorf("reading the schemas of configuration: %w", err)
	}
	var kinds []federation.Kind
	for _, k := range configkind.All() {
		kinds = append(kinds, k.Kind)
	}
	stored := p.store.Config(etcd.ConfigOptions{Kinds: kinds, Logger: p.logger, Meter: p.counts, Patience: storePatience})
	read := apply.NewValidated(stored, set, p.logger)
	o := config.Options{Hub: p.hub, Logger: p.logger}
	writer := p.snapshots.Open(config.NewState(o).Source())
	views := config.NewAggregate(o, writer, p.logger, append([]config.Named{{Name: "ETCD", Source: read}}, configSources(p, set)...)...)
	engine := apply.New(apply.Options{Log: stored, Leases: stored, Views: views, Snapshots: p.snapshots, Schema: set, Validated: read, Logger: p.logger})
	return &mesh{stored: stored, views: views, engine: engine, kinds: set.Kinds(), epoch: p.store.Epoch(), snapshots: p.snapshots, logger: p.logger}, nil
}

// graph is what the API reads and changes.
func (m *mesh) graph(d delivery, status statusOf, here presence) graph.Config {
	return graph.Config{
		Previewer: d, NotHonoured: status.notHonoured, Findings: status.findings, ServiceFindings: status.serviceFindings, Author: callerOf,
		Changer: thriftyEngine{m.engine, newThrift()}, Objects: m.views, History: m.stored, ObjectHistory: m.engine, Registrar: m.engine, Leases: m.stored,
		Kinds: m.kinds, Rollouts: d, Deliveries: d, OtherHubs: here.others, Epoch: m.epoch,
	}
}

// storePatience is how long a small write may take: whoever waits for it hears
// of a store that does not answer within 5 s (F13).
const storePatience = 4 * time.Second

// measure shows how the configuration and its sources are until the context
// ends.
func (m *mesh) measure(ctx context.Context, to *metrics.Config) error {
	warned := false
	for {
		v := m.views.Latest()
		to.InForce(v.Revision(), v.State.Len())
		open := countUnenforced(m.snapshots.Latest(), to)
		if v.Synced() && !warned {
			warnUnenforced(open, m.logger)
			warned = true
		}
		for _, s := range v.Sources {
			to.Source(s.Name, s.Revision, s.Heard, len(s.Trouble))
		}
		select {
		case <-v.Superseded():
		case <-ctx.Done():
			return nil
		}
	}
}

// run follows the sources until the context ends.
func (m *mesh) run(ctx context.Context) error {
	if err := m.views.Run(ctx); ctx.Err() == nil {
		return err
	}
	return nil
}

// whenBoth is closed when both are. It waits within run.
type whenBoth struct {
	clusters <-chan struct{}
	mesh     *mesh
	ready    chan struct{}
}

func (w whenBoth) run(ctx context.Context) error {
	if _, err := w.mesh.views.WaitSynced(ctx); err != nil {
		return nil // the hub ends
	}
	select {
	case <-w.clusters:
		close(w.ready)
	case <-ctx.Done():
	}
	return nil
}
