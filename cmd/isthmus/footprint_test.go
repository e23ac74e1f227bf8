package main

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/federation/config/etcd"
	"isthmus.dev/isthmus/federation/config/schema"
)

// TestR63ServiceEntriesTakeLittleMemory applies ServiceEntries of three endpoints
// to an embedded etcd and looks at what stays in memory of the store, the
// configuration and the snapshot together. With the trees and copies of before it
// was 22 kB for each; docs/adr/0029-sorted-maps-as-b-trees.md has the figures of a whole hub.
func TestR63ServiceEntriesTakeLittleMemory(t *testing.T) {
	const objects, limit = 2000, 10_000
	engine, snapshots := footprintMesh(t)
	apply1 := func(namespace string, n int) {
		r, err := engine.Apply(t.Context(), apply.Request{Manifests: []apply.File{{Name: "entries.yaml", Data: partnerEntries(namespace, n)}}})
		if err != nil || len(r.Errors) > 0 {
			t.Fatal(r.Errors, err)
		}
	}
	apply1("first", 10)
	before := liveBytes()
	apply1("shop", objects)
	for i := range 60 {
		apply1(fmt.Sprint("later-", i), 1) // etcd keeps up to 100 writes in memory
	}
	each := (liveBytes() - before) / objects
	if got := snapshots.Latest().CountServices(); got != objects+70 {
		t.Fatalf("there are %d services", got)
	}
	t.Logf("%d bytes for each object", each)
	if each > limit {
		t.Errorf("%d bytes stay in memory for each object, more than %d", each, limit)
	}
	runtime.KeepAlive(engine)
}

func footprintMesh(t *testing.T) (*apply.Engine, *federation.Aggregate) {
	t.Helper()
	set, err := schema.Load()
	if err != nil {
		t.Fatal(err)
	}
	store, err := etcd.Open(t.Context(), etcd.Options{DataDir: t.TempDir() + "/etcd"})
	if err != nil {
		t.Fatal(err)
	}
	kinds := []federation.Kind{federation.AllocationKind}
	for _, k := range set.Kinds() {
		kinds = append(kinds, k.Kind)
	}
	quiet := slog.New(slog.DiscardHandler)
	stored := store.Config(etcd.ConfigOptions{Kinds: kinds})
	read := apply.NewValidated(stored, set, quiet)
	snapshots := federation.NewAggregate(nil)
	o := config.Options{Hub: "hub"}
	views := config.NewAggregate(o, snapshots.Open(config.NewState(o).Source()), quiet, config.Named{Name: "ETCD", Source: read})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- views.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-ended
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := views.WaitSynced(ctx); err != nil {
		t.Fatal(err)
	}
	return apply.New(apply.Options{Log: stored, Leases: stored, Views: views, Snapshots: snapshots, Schema: set, Validated: read}), snapshots
}

func partnerEntries(namespace string, n int) []byte {
	var all strings.Builder
	for i := range n {
		fmt.Fprintf(&all, `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: partner-%[1]d, namespace: %[2]s, labels: {team: shop}}
spec:
  hosts: [api-%[1]d.partner.example.com]
  location: MESH_EXTERNAL
  resolution: STATIC
  ports: [{name: https, number: 443, protocol: TLS}]
  endpoints:
  - {address: 203.%[3]d.%[4]d.1, labels: {version: v1}, locality: eu/a}
  - {address: 203.%[3]d.%[4]d.2, labels: {version: v1}, locality: eu/b}
  - {address: 203.%[3]d.%[4]d.3, labels: {version: v2}, locality: eu/c}
---
`, i, namespace, i/250, i%250)
	}
	return []byte(all.String())
}

// liveBytes is what is reachable. What a finalizer or a cleanup holds goes with the
// second collection.
func liveBytes() int {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}

// TestR63MemoryIsReleasedOnceABurstIsOver: not while it goes on, not again for what
// a release could not return, and again after the next burst.
func TestR63MemoryIsReleasedOnceABurstIsOver(t *testing.T) {
	var r releaser
	const mb = 1 << 20
	for i, look := range []struct {
		mapped, cycles uint64
		due            bool
		after          uint64
	}{
		{20 * mb, 1, false, 0},
		{20 * mb, 1, false, 0}, // little is not worth it
		{900 * mb, 5, false, 0},
		{1200 * mb, 9, false, 0}, // the burst goes on
		{1200 * mb, 9, true, 400 * mb},
		{400 * mb, 10, false, 0},
		{500 * mb, 10, false, 0}, // idle work
		{800 * mb, 12, false, 0},
		{800 * mb, 12, true, 450 * mb},
	} {
		if due := r.isDue(memory{look.mapped, look.cycles}); due != look.due {
			t.Fatalf("look %d: due is %t, want %t", i, due, look.due)
		}
		if look.due {
			r.released(memory{look.after, look.cycles + 1})
		}
	}
	if now := readMemory(); now.mapped < mb {
		t.Errorf("the runtime says %+v", now)
	}
}
