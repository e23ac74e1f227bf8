package main

import (
	"context"
	"os"
	"runtime/debug"
	"sync"

	"isthmus.dev/isthmus/federation/config/apply"
)

const (
	// largeApply is how many bytes of manifests make a large apply.
	largeApply = 256 << 10
	// thriftyPercent is the garbage, in percent of what is live, at which the Go
	// runtime collects during a large apply.
	thriftyPercent = 25
)

// thrift has the garbage collector run more often until a large apply is answered.
// Its garbage is several hundred times the manifests; with the runtime's usual 100 %
// the hub would take twice its live memory for it (R63).
type thrift struct {
	mu     sync.Mutex
	large  int // applies that are being carried out
	usual  int // percent
	forced bool
}

// newThrift leaves the collector alone where GOGC is set.
func newThrift() *thrift { return &thrift{forced: os.Getenv("GOGC") != ""} }

// begin is called before a large apply, and end after its answer.
func (t *thrift) begin() (end func()) {
	if t.forced {
		return func() {}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.large++; t.large == 1 {
		t.usual = debug.SetGCPercent(thriftyPercent)
	}
	return t.end
}

func (t *thrift) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.large--; t.large == 0 {
		debug.SetGCPercent(t.usual)
	}
}

// thriftyEngine is an engine whose large applies are thrifty.
type thriftyEngine struct {
	*apply.Engine
	thrift *thrift
}

// Apply is part of graph.Changer.
func (e thriftyEngine) Apply(ctx context.Context, r apply.Request) (apply.Result, error) {
	size := 0
	for _, f := range r.Manifests {
		size += len(f.Data)
	}
	if size >= largeApply {
		context.AfterFunc(ctx, e.thrift.begin()) // the answer may need more than the apply
	}
	return e.Engine.Apply(ctx, r)
}
