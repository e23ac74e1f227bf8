package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/configtest/memory"
	"isthmus.dev/isthmus/federation/config/crd"
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/internal/kube/listwatch"
)

// customReader reads the custom resources of a cluster as the hub does.
type customReader struct {
	server *testbed.Kube
	set    *schema.Set
}

// edit changes one object.
func (r customReader) edit(count, turn int) error {
	return post(r.server, "PATCH", customPath(count)+"/v7?fieldManager=bench&force=true",
		custom(7, fmt.Sprint("/turn-", turn, "-", time.Now().UnixNano())))
}

// hearing is a config.Sink that counts objects.
type hearing struct {
	has, want int
	all       chan struct{} // closed when there are that many
	later     chan struct{} // one for each further update
}

func (h *hearing) Update(u config.Update) {
	if h.has >= h.want {
		h.later <- struct{}{}
		return
	}
	h.has += len(u.Events)
	if h.has >= h.want {
		close(h.all)
	}
}

func (*hearing) Trouble([]config.Problem) {}

// read reads the objects of a namespace, as the source gives them, then calls after, if there
// is one.
func (r customReader) read(ctx context.Context, count int, after func(<-chan struct{}) error) error {
	return within(ctx, func(ctx context.Context, running *sync.WaitGroup) error {
		f, err := r.follow(ctx, running, count, "")
		if err != nil {
			return err
		}
		to := &hearing{want: count, all: make(chan struct{}), later: make(chan struct{}, 16)}
		running.Go(func() { _ = f.source.Run(ctx, to) })
		select {
		case <-to.all:
		case <-ctx.Done():
			return fmt.Errorf("reading the objects: %w", ctx.Err())
		}
		if after == nil {
			return nil
		}
		return after(to.later)
	})
}

// readWhole reads them until they are in a snapshot, and on disk for the next start.
func (r customReader) readWhole(ctx context.Context, s *stage, count int) error {
	dir := s.TempDir()
	return within(ctx, func(ctx context.Context, running *sync.WaitGroup) error {
		f, err := r.follow(ctx, running, count, dir)
		if err != nil {
			return err
		}
		for view := f.views.Latest(); view.State.Len() <= count; view = f.views.Latest() { // beside them there are the settings
			select {
			case <-view.Superseded():
			case <-ctx.Done():
				return fmt.Errorf("reading the objects: %w", ctx.Err())
			}
		}
		return awaitFile(ctx, filepath.Join(dir, "c1.db"))
	})
}

func awaitFile(ctx context.Context, path string) error {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			return err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", path, ctx.Err())
		}
	}
}

// within ends all that was started, and gives it two minutes.
func within(ctx context.Context, do func(context.Context, *sync.WaitGroup) error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	var running sync.WaitGroup
	defer func() { cancel(); running.Wait() }()
	return do(ctx, &running)
}

// configured is a hub's configuration that has a source of custom resources.
type configured struct {
	source *crd.Source
	views  *config.Aggregate
}

// follow starts what the source needs of a hub. With a folder the source runs as one of the
// configuration, else by the caller.
func (r customReader) follow(ctx context.Context, running *sync.WaitGroup, count int, dir string) (f configured, err error) {
	client, err := connect(r.server)
	if err != nil {
		return f, err
	}
	on, err := client.Dynamic()
	if err != nil {
		return f, err
	}
	store := memory.New(federation.MeshSettingsKind)
	if err := chooseCustom(ctx, store, count); err != nil {
		return f, err
	}
	quiet, snapshots := slog.New(slog.DiscardHandler), federation.NewAggregate(nil)
	f.source = crd.New(crd.Options{
		Kinds: r.set.Kinds(), Schema: kind.Schema{Set: r.set, Newer: true}, Snapshots: snapshots, Logger: quiet, Dir: dir,
	})
	sources := []config.Named{{Name: "ETCD", Source: store}}
	if dir != "" {
		sources = append(sources, config.Named{Name: "CRD", Source: f.source})
	}
	in := config.Options{Hub: "hub"}
	f.views = config.NewAggregate(in, snapshots.Open(config.NewState(in).Source()), quiet, sources...)
	f.source.Settings(f.views)
	snapshots.Open(federation.ShardKey{Provider: federation.Operator}).Update(federation.Edit{Clusters: federation.Delta[federation.ClusterID,
		federation.ClusterSpec]{
		Set: map[federation.ClusterID]federation.ClusterSpec{"c1": {Provider: federation.Kubernetes}},
	}})
	registry := snapshots.Open(federation.ShardKey{Provider: federation.Kubernetes, Cluster: "c1"})
	cluster := listwatch.NewCluster(client, listwatch.ClusterOptions{Logger: quiet, Dynamic: on})
	running.Go(func() { _ = f.views.Run(ctx) })
	running.Go(func() {
		cluster.Run(ctx, func(uid string, _ error) {
			registry.Update(federation.Edit{Identity: &federation.ClusterIdentity{UID: uid}, Status: &federation.RegistryStatus{Phase: federation.Ready}})
		})
		client.Close()
	})
	running.Go(func() { f.source.Follow(ctx, "c1", cluster) })
	return f, nil
}

// chooseCustom stores the settings that have the custom resources of one namespace read.
func chooseCustom(ctx context.Context, store *memory.Store, count int) error {
	settings := fmt.Appendf(nil, `{"apiVersion":"isthmus.dev/v1","kind":"MeshSettings","metadata":{"name":"default"},"spec":{"sources":[
		{"cluster":"c1","namespaces":[%q],"kinds":["VirtualService.networking.istio.io"]}]}}`, customNamespace(count))
	object := &config.Object{Key: federation.MeshSettingsKey, APIVersion: "isthmus.dev/v1", Manifest: settings}
	if _, err := store.Commit(ctx, config.Commit{Changes: []config.Change{{Key: federation.MeshSettingsKey, Object: object}}}); err != nil {
		return fmt.Errorf("storing the settings: %w", err)
	}
	return nil
}
