package graph_test

import (
	"context"
	"sync/atomic"
	"testing"

	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/graph"
)

// frozen is a store of which every read fails. It counts them.
type frozen struct{ reads atomic.Int64 }

func (f *frozen) Records(context.Context, int64, int) ([]config.Record, error) {
	f.reads.Add(1)
	return nil, config.ErrUnavailable
}

func (f *frozen) At(context.Context, int64) ([]config.Object, error) {
	f.reads.Add(1)
	return nil, config.ErrUnavailable
}

// TestR41WhatIsInMemoryAsksTheStoreForNothing: of all the contract's operations that
// read, only `history` and `configObject(at:)` read the store.
func TestR41WhatIsInMemoryAsksTheStoreForNothing(t *testing.T) {
	store := &frozen{}
	c := newConfigured(t, func(o *graph.Options) { o.Config.History = store })
	c.apply(route("shop", "cart", "a"))
	texts := contract(t)
	for name, variables := range map[string]map[string]any{
		"Overview": nil, "Clusters": nil, "Services": nil, "Proxies": nil,
		"Service":       {"hostname": web.Hostname, "namespace": web.Namespace},
		"ConfigObjects": {"kind": "VirtualService", "namespace": "shop"},
	} {
		if _, errs := c.send(texts[name], variables); len(errs) > 0 || store.reads.Load() > 0 {
			t.Errorf("%s reads the store %d times: %s", name, store.reads.Load(), errs)
		}
	}
	const mixed = `{ history(first: 1) {nodes {revision}}
		then: configObject(group: "networking.istio.io", kind: "VirtualService", namespace: "shop", name: "cart", at: "1") {name}
		configObjects {totalCount nodes {status {findings {code}} history {totalCount}}} }`
	data, errs := c.ask(mixed, nil)
	if errs == "" || store.reads.Load() != 2 || at(data, "configObjects", "totalCount") != 3.0 {
		t.Errorf("an operation with two reads of the store makes %d: %v, errors %s", store.reads.Load(), data, errs)
	}
}
