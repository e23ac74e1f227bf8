package memory

import (
	"context"
	"log/slog"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/federation/config/etcd"
	"isthmus.dev/isthmus/federation/config/schema"
)

// TestR63ServiceEntriesTakeLittleMemory applies ServiceEntries of three endpoints
// to an embedded etcd and looks at what stays in memory of the store, the
// configuration and the snapshot together, and at what the request holds while it is
// committed: by then nothing of what its manifests were read to, which is many times
// their text. docs/adr/0041-memory-of-a-large-apply.md has the figures of a whole hub.
func TestR63ServiceEntriesTakeLittleMemory(t *testing.T) {
	const objects = 1000
	limit := 8000
	if raceDetector {
		limit = 9500 // it pads what is allocated
	}
	m := footprintMesh(t)
	m.apply(t, "first", 10)
	before := liveBytes()
	request := m.apply(t, "shop", objects)
	peak := m.log.live - before
	stays := settledBytes(limit*objects+before) - before
	if got := m.snapshots.Latest().Services().Len(); got != objects+10 {
		t.Fatalf("there are %d services", got)
	}
	t.Logf("%d bytes stay for each object; %d are held for each when a request of %d each is committed",
		stays/objects, peak/objects, request/objects)
	if each := stays / objects; each > limit {
		t.Errorf("%d bytes stay in memory for each object, more than %d", each, limit)
	}
	if most := stays + request; peak > most {
		t.Errorf("the hub holds %d bytes when the request is committed, more than the request and what stays, %d", peak, most)
	}
	runtime.KeepAlive(m)
}

// footprint is a hub's configuration and its snapshots.
type footprint struct {
	engine    *apply.Engine
	snapshots *federation.Aggregate
	log       *weighedLog
}

// apply returns the bytes of the request.
func (m *footprint) apply(t *testing.T, namespace string, n int) int {
	t.Helper()
	manifests := testbed.PartnerEntries(namespace, 0, n)
	r, err := m.engine.Apply(t.Context(), apply.Request{Manifests: []apply.File{{Name: "entries.yaml", Data: string(manifests)}}})
	if err != nil || len(r.Errors) > 0 {
		t.Fatal(r.Errors, err)
	}
	return len(manifests)
}

// weighedLog looks at what is in memory when a commit begins.
type weighedLog struct {
	config.Log
	live int
}

func (l *weighedLog) Commit(ctx context.Context, c config.Commit) (int64, error) {
	l.live = liveBytes()
	return l.Log.Commit(ctx, c)
}

func footprintMesh(t *testing.T) *footprint {
	t.Helper()
	set, err := schema.Load()
	if err != nil {
		t.Fatal(err)
	}
	store, err := etcd.Open(t.Context(), etcd.Options{DataDir: t.TempDir() + "/etcd", Patience: 5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	kinds := []federation.Kind{federation.AllocationKind}
	for _, k := range set.Kinds() {
		kinds = append(kinds, k.Kind)
	}
	quiet := slog.New(slog.DiscardHandler)
	stored := store.Config(etcd.ConfigOptions{Kinds: kinds, Patience: time.Minute})
	log := &weighedLog{Log: stored}
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
	engine := apply.New(apply.Options{Log: log, Leases: stored, Views: views, Snapshots: snapshots, Schema: set, Validated: read})
	return &footprint{engine, snapshots, log}
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

// settledBytes is liveBytes once it is at most limit, or after a while: etcd lets go of
// a request some time after it has answered.
func settledBytes(limit int) int {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	live := liveBytes()
	for range 600 {
		if live <= limit {
			break
		}
		<-tick.C
		live = liveBytes()
	}
	return live
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
		if due := r.isDue(usage{look.mapped, look.cycles}); due != look.due {
			t.Fatalf("look %d: due is %t, want %t", i, due, look.due)
		}
		if look.due {
			r.released(usage{look.after, look.cycles + 1})
		}
	}
	if now := readMemory(); now.mapped < mb {
		t.Errorf("the runtime says %+v", now)
	}
}

// TestR63LargeAppliesCollectSooner: once the last of those that run at the same time
// has ended for some time, the collector is as before; where GOGC is set, it is left alone.
func TestR63LargeAppliesCollectSooner(t *testing.T) {
	t.Setenv("GOGC", "")
	usual := collectsAt()
	synctest.Test(t, func(t *testing.T) {
		large := newLargeApplies()
		pass := func(d time.Duration) { <-time.NewTimer(d).C }
		expect := func(when string, want uint64) {
			t.Helper()
			if got := collectsAt(); got != want {
				t.Errorf("%s it collects at %d %%, want %d", when, got, want)
			}
		}
		first, second := large.begin(1), large.begin(1)
		first()
		pass(2 * afterwards)
		expect("during a large apply", largePercent)
		second()
		pass(afterwards / 2)
		third := large.begin(1)
		pass(2 * afterwards)
		expect("during one that began soon after the others", largePercent)
		third()
		pass(afterwards / 2)
		expect("soon after large applies", largePercent)
		pass(afterwards)
		expect("after large applies", usual)
	})
	t.Setenv("GOGC", "150")
	defer newLargeApplies().begin(1)()
	if got := collectsAt(); got != usual {
		t.Errorf("GOGC is set, and a large apply changes the collector to %d %%", got)
	}
}

// TestR63LargeAppliesHaveAMemoryLimit: what the hub had, and room for each of those that
// run at the same time. A lower limit of the operator's stays, and all is as before
// once the last of them has ended.
func TestR63LargeAppliesHaveAMemoryLimit(t *testing.T) {
	t.Setenv("GOGC", "")
	usual := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(usual) })
	const room = 1 << 30
	for _, given := range []int64{math.MaxInt64, 1 << 20} {
		debug.SetMemoryLimit(given)
		large := newLargeApplies()
		first := large.begin(room)
		one := debug.SetMemoryLimit(-1)
		second := large.begin(room)
		two := debug.SetMemoryLimit(-1)
		if limited := given > room; limited && (one < room || one > 3*room || two != one+room) || !limited && (one != given || two != given) {
			t.Errorf("with the limit %d, it is %d during one apply and %d during two", given, one, two)
		}
		first()
		second()
		large.restore()
		if got := debug.SetMemoryLimit(-1); got != given {
			t.Errorf("after large applies the limit is %d, was %d", got, given)
		}
	}
}

// TestR63LargeAppliesAreThriftyUntilTheyAreAnswered: the answer, with a difference for
// each object, may need more memory than the apply. The request's context ends with it.
func TestR63LargeAppliesAreThriftyUntilTheyAreAnswered(t *testing.T) {
	t.Setenv("GOGC", "")
	usual, engine := collectsAt(), NewEngine(footprintMesh(t).engine)
	engine.large.afterwards = time.Millisecond
	ctx, answered := context.WithCancel(t.Context())
	defer answered()
	large := string(testbed.PartnerEntries("shop", 0, 1)) + strings.Repeat("# comment\n", largeApply/10)
	for _, manifests := range []string{string(testbed.PartnerEntries("shop", 0, 1)), large} {
		r, err := engine.Apply(ctx, apply.Request{DryRun: true, Manifests: []apply.File{{Data: manifests}}})
		if err != nil || len(r.Errors) > 0 {
			t.Fatal(r.Errors, err)
		}
		want := usual
		if len(manifests) >= largeApply {
			want = largePercent
		}
		if got := collectsAt(); got != want {
			t.Errorf("while %d bytes are answered it collects at %d %%, want %d", len(manifests), got, want)
		}
	}
	answered()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	for collectsAt() != usual {
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatalf("after the answer it collects at %d %%", collectsAt())
		}
	}
}

func collectsAt() uint64 {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
