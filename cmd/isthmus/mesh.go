package main

import (
	"context"
	"fmt"
	"log/slog"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/federation/config/etcd"
	"isthmus.dev/isthmus/federation/config/schema"
)

// mesh is the mesh's configuration, joined: where it comes from, what is in
// force, and how it is changed.
type mesh struct {
	views  *config.Aggregate
	engine *apply.Engine
	kinds  []schema.Kind
}

// meshParts are what a mesh is joined from.
type meshParts struct {
	store     *etcd.Store
	snapshots *federation.Aggregate
	hub       federation.ClusterID
	logger    *slog.Logger
	meter     etcd.Meter
}

// configSources are the sources of configuration after the store of record, in
// order of precedence; a new one is one line here (ADR 0015).
func configSources() []config.Named { return nil }

func joinMesh(p meshParts) (*mesh, error) {
	set, err := schema.Load()
	if err != nil {
		return nil, fmt.Errorf("reading the schemas of configuration: %w", err)
	}
	kinds := []federation.Kind{federation.AllocationKind}
	for _, k := range set.Kinds() {
		kinds = append(kinds, k.Kind)
	}
	stored := p.store.Config(etcd.ConfigOptions{Kinds: kinds, Logger: p.logger, Meter: p.meter})
	o := config.Options{Hub: p.hub}
	writer := p.snapshots.Open(config.NewState(o).Source())
	views := config.NewAggregate(o, writer, p.logger, append([]config.Named{{Name: "ETCD", Source: stored}}, configSources()...)...)
	engine := apply.New(apply.Options{Log: stored, Views: views, Snapshots: p.snapshots, Schema: set})
	return &mesh{views: views, engine: engine, kinds: set.Kinds()}, nil
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
