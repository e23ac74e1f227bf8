// Package mesh joins the configuration of the mesh: its sources, what is in force, and how
// it is changed.
package mesh

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/federation/config/etcd"
	configkind "isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/federation/config/writeback"
	"isthmus.dev/isthmus/graph"
	"isthmus.dev/isthmus/internal/hub/memory"
	"isthmus.dev/isthmus/internal/hub/sources"
	"isthmus.dev/isthmus/internal/hub/status"
	"isthmus.dev/isthmus/internal/metrics"
)

// Mesh is the mesh's configuration, joined: where it comes from, what is in
// force, and how it is changed.
type Mesh struct {
	Stored  *etcd.Config
	Views   *config.Aggregate
	Engine  *apply.Engine
	Kinds   []schema.Kind
	Epoch   string
	Readers []sources.ClusterReader // of the clusters whose objects are configuration

	snapshots *federation.Aggregate
	logger    *slog.Logger
	status    *writeback.Writer
	statusOf  writeback.Parts
}

// Options are what a mesh is joined from.
type Options struct {
	Store     *etcd.Store
	Snapshots *federation.Aggregate
	Hub       federation.ClusterID
	Sources   sources.Settings
	Kept      func(source string) string // the folder of what a source gave last
	Limits    federation.Limits          // of the custom resources of one cluster, and of its Ingresses
	Leader    writeback.Leader           // of the status of objects in clusters
	Logger    *slog.Logger
	Metrics   *metrics.Config
}

// New joins the sources.
func New(o Options) (*Mesh, error) {
	set, err := schema.Load(configkind.Expressions)
	if err != nil {
		return nil, fmt.Errorf("reading the schemas of configuration: %w", err)
	}
	var kinds []federation.Kind
	for _, k := range configkind.All() {
		kinds = append(kinds, k.Kind)
	}
	stored := o.Store.Config(etcd.ConfigOptions{Kinds: kinds, Logger: o.Logger, Meter: o.Metrics, Patience: StorePatience})
	read := apply.NewValidated(stored, set, o.Logger)
	in := config.Options{Hub: o.Hub, Logger: o.Logger, Meter: countChanges(o.Metrics, set.Kinds())}
	writer := o.Snapshots.Open(config.NewState(in).Source())
	written := writeback.New(writeback.Options{Snapshots: o.Snapshots, Leader: o.Leader, Meter: o.Metrics, Logger: o.Logger})
	others := open(o, set, written)
	views := config.NewAggregate(in, writer, o.Logger, others.named(config.Named{Name: "ETCD", Source: read})...)
	others.learn(views)
	engine := apply.New(apply.Options{
		Log: stored, Leases: stored, Views: views, Snapshots: o.Snapshots, Schema: set,
		Validated: read, Logger: o.Logger,
	})
	return &Mesh{
		Stored: stored, Views: views, Engine: engine, Kinds: set.Kinds(), Epoch: o.Store.Epoch(),
		Readers: append(others.readers(), written),
		status:  written, statusOf: others.parts(views),
		snapshots: o.Snapshots, logger: o.Logger,
	}, nil
}

// WriteStatus writes the status of objects into clusters until the context ends.
func (m *Mesh) WriteStatus(ctx context.Context, proxies status.Written, here Presence) error {
	parts := m.statusOf
	proxies.Others = here.others
	parts.Proxies = proxies
	return m.status.Run(ctx, parts)
}

// Graph is what the API reads and changes.
func (m *Mesh) Graph(d status.Delivery, objects *status.Objects, here Presence, author func(context.Context) string) graph.Config {
	return graph.Config{
		Previewer: d, NotHonoured: objects.NotHonoured, Findings: objects.Findings, ServiceFindings: objects.ServiceFindings, Author: author,
		Changer: memory.NewEngine(m.Engine), Objects: m.Views, History: m.Stored, ObjectHistory: m.Engine, Registrar: m.Engine, Leases: m.Stored,
		Kinds: m.Kinds, Rollouts: d, Deliveries: d, OtherHubs: here.others, Epoch: m.Epoch,
	}
}

// StorePatience is how long a small write may take: its caller learns
// within 5 s that a store does not answer (F13).
const StorePatience = 4 * time.Second

// Measure shows how the configuration and its sources are until the context
// ends.
func (m *Mesh) Measure(ctx context.Context, to *metrics.Config) error {
	warned := false
	for {
		v := m.Views.Latest()
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

// Run follows the sources until the context ends.
func (m *Mesh) Run(ctx context.Context) error {
	if err := m.Views.Run(ctx); ctx.Err() == nil {
		return err
	}
	return nil
}
