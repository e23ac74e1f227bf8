package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/crd"
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/federation/config/memory"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/internal/kube/listwatch"
)

var customResource = apischema.GroupVersionResource{Group: "networking.istio.io", Version: "v1", Resource: "virtualservices"}

// The namespaces of the custom resources, each with so many.
const (
	fewCustom    = 1_000
	manyCustom   = 10_000
	customRounds = 5
	customEdits  = 40
)

func customNamespace(count int) string { return fmt.Sprint("n", count) }

func customPath(count int) string {
	return "/apis/networking.istio.io/v1/namespaces/" + customNamespace(count) + "/virtualservices"
}

// printCustom measures how custom resources of a real API server are read, against client-go
// that lists and decodes the same, and what one changed object costs among few and many.
func printCustom(ctx context.Context, _ options) error {
	return on(func(s *stage) error {
		server := testbed.StartKube(s, testbed.KubeOptions{Name: "custom"})
		fmt.Fprintf(os.Stderr, "filling a cluster with %d custom resources\n", fewCustom+manyCustom)
		if err := fillCustom(s, server); err != nil {
			return err
		}
		set, err := schema.Load(kind.Expressions)
		if err != nil {
			return fmt.Errorf("reading the schemas: %w", err)
		}
		took, err := compareReading(ctx, s, server, set)
		if err != nil {
			return err
		}
		fmt.Printf("CPU of reading %d custom resources\t%v\tclient-go, list and decode in the same pages %v, into Go types %v\tratio %.2f, %.2f (goal 1.5)\n",
			manyCustom, took[0], took[1], took[2], ratio(took[0], took[1]), ratio(took[0], took[2]))
		return printCustomChange(ctx, s, server, set)
	})
}

// compareReading is the CPU time of reading many objects as the hub does, of listing them with
// client-go, and of listing them into the types of their module. All take turns.
func compareReading(ctx context.Context, s *stage, server *testbed.Kube, set *schema.Set) ([]time.Duration, error) {
	used := func(measure func() error) func() (time.Duration, error) {
		return func() (time.Duration, error) {
			before := testbed.UsedCPU(s)
			err := measure()
			return testbed.UsedCPU(s) - before, err
		}
	}
	return takeTurns(
		customRounds,
		used(func() error { return readCustom(ctx, server, set, manyCustom, nil) }),
		used(func() error { return listCustom(ctx, server) }),
		used(func() error { return listTyped(ctx, server) }),
	)
}

// printCustomChange prints what one changed object costs.
func printCustomChange(ctx context.Context, s *stage, server *testbed.Kube, set *schema.Set) error {
	var costs []time.Duration
	for _, count := range []int{fewCustom, manyCustom} {
		var used time.Duration
		change := func(heard <-chan struct{}) error {
			before := testbed.UsedCPU(s)
			for turn := range customEdits {
				if err := post(server, "PATCH", customPath(count)+"/v7?fieldManager=bench&force=true", custom(7, fmt.Sprint("/turn-", turn, "-", time.Now().UnixNano()))); err != nil {
					return err
				}
				<-heard
			}
			used = testbed.UsedCPU(s) - before
			return nil
		}
		if err := readCustom(ctx, server, set, count, change); err != nil {
			return err
		}
		costs = append(costs, used/customEdits)
	}
	fmt.Printf("CPU of one changed custom resource\t%v among %d\t%v among %d\tratio %.2f (goal 1)\n", costs[0], fewCustom, costs[1], manyCustom, ratio(costs[1], costs[0]))
	return nil
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
	if h.has += len(u.Events); h.has >= h.want {
		close(h.all)
	}
}

func (*hearing) Trouble([]config.Problem) {}

// readCustom reads the objects of a namespace as the hub does, then calls after, if there is one.
func readCustom(ctx context.Context, k *testbed.Kube, set *schema.Set, count int, after func(<-chan struct{}) error) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer func() { cancel(); running.Wait() }()
	to := &hearing{want: count, all: make(chan struct{}), later: make(chan struct{}, 16)}
	if err := followCustom(ctx, k, set, &running, to); err != nil {
		return err
	}
	timer := time.NewTimer(time.Minute)
	defer timer.Stop()
	select {
	case <-to.all:
	case <-timer.C:
		return errors.New("the objects were not read within a minute")
	}
	if after == nil {
		return nil
	}
	return after(to.later)
}

// followCustom starts the source of custom resources, with what it needs of a hub.
func followCustom(ctx context.Context, k *testbed.Kube, set *schema.Set, running *sync.WaitGroup, to *hearing) error {
	client, err := connect(k)
	if err != nil {
		return err
	}
	on, err := client.Dynamic()
	if err != nil {
		return err
	}
	store := memory.New(federation.MeshSettingsKind)
	if err := chooseCustom(ctx, store, to.want); err != nil {
		return err
	}
	quiet, snapshots := slog.New(slog.DiscardHandler), federation.NewAggregate(nil)
	source := crd.New(crd.Options{Kinds: set.Kinds(), Schema: kind.Schema{Set: set}, Snapshots: snapshots, Logger: quiet})
	in := config.Options{Hub: "hub"}
	views := config.NewAggregate(in, snapshots.Open(config.NewState(in).Source()), quiet, config.Named{Name: "ETCD", Source: store})
	source.Settings(views)
	snapshots.Open(federation.ShardKey{Provider: federation.Operator}).Update(federation.Edit{Clusters: federation.Delta[federation.ClusterID, federation.ClusterSpec]{
		Set: map[federation.ClusterID]federation.ClusterSpec{"c1": {Provider: federation.Kubernetes}},
	}})
	registry := snapshots.Open(federation.ShardKey{Provider: federation.Kubernetes, Cluster: "c1"})
	cluster := listwatch.NewCluster(client, listwatch.ClusterOptions{Logger: quiet, Dynamic: on})
	running.Go(func() { _ = views.Run(ctx) })
	running.Go(func() { _ = source.Run(ctx, to) })
	running.Go(func() {
		cluster.Run(ctx, func(uid string, _ error) {
			registry.Update(federation.Edit{Identity: &federation.Identity{UID: uid}, Status: &federation.RegistryStatus{Phase: federation.Ready}})
		})
		client.Close()
	})
	running.Go(func() { source.Follow(ctx, "c1", cluster) })
	return nil
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
