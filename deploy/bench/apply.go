package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/federation/config/etcd"
	"isthmus.dev/isthmus/federation/config/schema"
)

// applyRounds is how often each side is measured; they take turns.
const applyRounds = 3

// applied is what it took to write objects in one way.
type applied struct {
	apply, puts time.Duration // medians
	cpu         time.Duration // of one apply
	objects     int
	bytes       int
}

// mesh is a hub's configuration without the rest of the hub, on an embedded
// etcd of its own.
type mesh struct {
	store  *etcd.Store
	engine *apply.Engine
	views  *config.Aggregate
}

func openMesh(ctx context.Context, dir string) (*mesh, error) {
	set, err := schema.Load()
	if err != nil {
		return nil, err
	}
	store, err := etcd.Open(ctx, etcd.Options{DataDir: dir})
	if err != nil {
		return nil, err
	}
	kinds := []federation.Kind{federation.AllocationKind, federation.GatewayHealthKind}
	for _, k := range set.Kinds() {
		kinds = append(kinds, k.Kind)
	}
	quiet := slog.New(slog.DiscardHandler)
	stored := store.Config(etcd.ConfigOptions{Kinds: kinds})
	read := apply.NewValidated(stored, set, quiet)
	snapshots := federation.NewAggregate(nil)
	o := config.Options{Hub: "hub"}
	views := config.NewAggregate(o, snapshots.Open(config.NewState(o).Source()), quiet, config.Named{Name: "ETCD", Source: read})
	engine := apply.New(apply.Options{Log: stored, Leases: stored, Views: views, Snapshots: snapshots, Schema: set, Validated: read})
	return &mesh{store, engine, views}, nil
}

// benchManifests are VirtualServices of about 1 KiB in a namespace of their own.
func benchManifests(n, round int) []byte {
	var all strings.Builder
	for i := range n {
		fmt.Fprintf(&all, `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata:
  name: route-%[1]d
  namespace: round-%[2]d
  labels: {app: web-%[1]d, team: shop}
spec:
  hosts: [web-%[1]d.example.com]
  http:
  - match: [{uri: {prefix: /login}, headers: {end-user: {exact: jason}}}]
    timeout: 5s
    retries: {attempts: 3, perTryTimeout: 2s, retryOn: "5xx,connect-failure"}
    route:
    - {destination: {host: web-%[1]d.example.com, subset: v2, port: {number: 8080}}, weight: 80}
    - {destination: {host: web-%[1]d.example.com, subset: v3, port: {number: 8080}}, weight: 20}
  - route: [{destination: {host: web-%[1]d.example.com, subset: v1, port: {number: 8080}}}]
---
`, i, round)
	}
	return []byte(all.String())
}

// applyCost compares applying many objects at once with one put for each, one
// after the other, of the same bytes and to the same etcd.
func applyCost(ctx context.Context, objects int, profile string) (applied, error) {
	dir, err := os.MkdirTemp("", "isthmus-bench-")
	if err != nil {
		return applied{}, err
	}
	defer os.RemoveAll(dir)
	m, err := openMesh(ctx, filepath.Join(dir, "etcd"))
	if err != nil {
		return applied{}, err
	}
	defer m.store.Close()
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { defer close(ended); _ = m.views.Run(ctx) }() // it ends with the context
	defer func() { cancel(); <-ended }()
	if _, err := m.views.WaitSynced(ctx); err != nil {
		return applied{}, err
	}
	if profile != "" {
		file, err := os.Create(profile)
		if err != nil {
			return applied{}, err
		}
		defer file.Close()
		if err := pprof.StartCPUProfile(file); err != nil {
			return applied{}, err
		}
		defer pprof.StopCPUProfile()
	}
	return m.compare(ctx, objects)
}

func (m *mesh) compare(ctx context.Context, objects int) (applied, error) {
	a := applied{objects: objects}
	var applies, puts []time.Duration
	var cpu time.Duration
	for round := range applyRounds {
		text := benchManifests(objects, round)
		before, _ := usage()
		began := time.Now()
		r, err := m.engine.Apply(ctx, apply.Request{Manifests: []apply.File{{Name: "mesh.yaml", Data: string(text)}}})
		applies = append(applies, time.Since(began))
		after, _ := usage()
		cpu += after - before
		if err != nil || len(r.Errors) > 0 {
			return a, fmt.Errorf("applying: %v, %w", r.Errors, err)
		}
		began = time.Now()
		for _, c := range r.Changes {
			if _, err := m.store.Client().Put(ctx, "/bench/"+c.Key.String(), string(c.Object.Manifest)); err != nil {
				return a, err
			}
			if round == 0 {
				a.bytes += len(c.Object.Manifest)
			}
		}
		puts = append(puts, time.Since(began))
	}
	slices.Sort(applies)
	slices.Sort(puts)
	a.cpu = cpu / applyRounds
	a.apply, a.puts = applies[applyRounds/2], puts[applyRounds/2]
	return a, nil
}

func printApply(ctx context.Context, o options) error {
	fmt.Fprintf(os.Stderr, "applying %d objects, %d times\n", o.objects, applyRounds)
	a, err := applyCost(ctx, o.objects, o.profile)
	if err != nil {
		return err
	}
	fmt.Printf("applying %d objects of %d KiB\t%v, CPU %v\tone etcd put for each\t%v\tratio %.2f (goal 1.5)\n\n",
		a.objects, a.bytes>>10, a.apply.Round(time.Millisecond), a.cpu.Round(time.Millisecond),
		a.puts.Round(time.Millisecond), ratio(a.apply, a.puts))
	return nil
}
