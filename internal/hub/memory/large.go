package memory

import (
	"context"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"time"

	"isthmus.dev/isthmus/federation/config/apply"
)

const (
	// largeApply is how many bytes of manifests make a large apply.
	largeApply = 256 << 10
	// largePercent is the garbage, in percent of what is live, at which the Go
	// runtime collects during a large apply. With more, what floats above the limit below
	// makes the runtime collect without a pause, until it has had its half of the processor
	// time; from then on it no longer slows down what allocates.
	largePercent = 10
	// roomPerByte and roomPerDocument say how much memory an apply may take beside what
	// the hub has before: two fifths more than stays of ServiceEntries. Beyond it, the runtime
	// collects more often, for up to half of the processor time.
	roomPerByte     = 22
	roomPerDocument = 11 << 10
	// leastRoom is the part of what the hub has that an apply may take in any case:
	// proxies are served meanwhile.
	leastRoom = 8
	// afterwards is how long the collector goes on like that once the last large apply was answered:
	// its own work on what was applied goes on for some seconds.
	afterwards = 10 * time.Second
)

// largeApplies has the garbage collector run more often from the begin of a large apply until
// some time after its answer. Its garbage is several hundred times the manifests; with the
// runtime's usual 100 % the hub would take twice its live memory for it (R63).
type largeApplies struct {
	forced     bool // GOGC is set: the collector is left alone
	afterwards time.Duration

	mu    sync.Mutex
	on    bool
	large int   // applies that are not answered yet
	usual int   // percent
	most  int64 // usual memory limit
	had   int64 // bytes, before the first of them
	room  int64 // bytes for all of them
}

func newLargeApplies() *largeApplies {
	return &largeApplies{forced: os.Getenv("GOGC") != "", afterwards: afterwards}
}

// begin is called before a large apply with the memory that it may take, and end after
// its answer.
func (t *largeApplies) begin(room int64) (end func()) {
	if t.forced {
		return func() {}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.on {
		t.on = true
		t.usual, t.most = debug.SetGCPercent(largePercent), debug.SetMemoryLimit(-1)
	}
	t.large++
	if t.large == 1 {
		debug.FreeOSMemory() // what earlier work has left would come on top
		t.had, t.room = goMemory(), 0
	}
	t.room += max(room, t.had/leastRoom)
	debug.SetMemoryLimit(min(t.most, t.had+t.room))
	return t.end
}

func (t *largeApplies) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.large--
	if t.large == 0 {
		time.AfterFunc(t.afterwards, t.restore)
	}
}

func (t *largeApplies) collect() {
	if !t.forced {
		runtime.GC()
	}
}

// restore gives the runtime its usual settings, unless another large apply has begun.
func (t *largeApplies) restore() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.large == 0 && t.on {
		t.on = false
		debug.SetGCPercent(t.usual)
		debug.SetMemoryLimit(t.most)
	}
}

// goMemory is what the Go runtime counts towards its memory limit.
func goMemory() int64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return int64(min(samples[0].Value.Uint64()-samples[1].Value.Uint64(), math.MaxInt64))
}

// Engine is an engine that has the garbage collector run more often during large applies.
type Engine struct {
	*apply.Engine
	large *largeApplies
}

// NewEngine makes one.
func NewEngine(of *apply.Engine) Engine { return Engine{of, newLargeApplies()} }

// Apply is part of graph.Changer.
func (e Engine) Apply(ctx context.Context, r apply.Request) (apply.Result, error) {
	size, documents := 0, 0
	for _, f := range r.Manifests {
		size += len(f.Data)
		documents += 1 + strings.Count(f.Data, "\n---")
	}
	if size < largeApply {
		return e.Engine.Apply(ctx, r)
	}
	end := e.large.begin(int64(max(size*roomPerByte, documents*roomPerDocument)))
	context.AfterFunc(ctx, end) // the answer may need more than the apply
	result, err := e.Engine.Apply(ctx, r)
	e.large.collect() // what the publication has left would come on top of the answer
	return result, err
}
