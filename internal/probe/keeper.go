package probe

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/retry"
	"isthmus.dev/isthmus/internal/wake"
)

// Health is what this hub reports about the paths from one network: of those that it
// found reachable, or of those that it did not.
type Health struct {
	HealthKey
	Since map[netip.AddrPort]time.Time // by gateway
}

// HealthKey names the health records of this hub.
type HealthKey struct {
	Observer  federation.NetworkID
	Reachable bool
}

// ErrNoHealth is the error of a renewal of what is not there any more.
var ErrNoHealth = errors.New("there is no such health record")

// Store keeps health records where every hub reads them. Its methods may block.
type Store interface {
	// Put keeps the record until the TTL ends; it replaces the one with that key.
	Put(ctx context.Context, s Health, ttl time.Duration) error
	// Renew restarts its TTL; ErrNoHealth when it is gone.
	Renew(ctx context.Context, key HealthKey) error
	// Remove does nothing where there is none.
	Remove(ctx context.Context, key HealthKey) error
}

// Snapshots gives the newest snapshot; an Aggregate does.
type Snapshots interface {
	Latest() *federation.Snapshot
}

// How long records last without their hub. One that says reachable ends soon: it
// outvotes every other hub. One that says unreachable outlasts a failure of the
// store, and is outvoted by any hub that knows better.
const (
	ttlReachable   = 30 * time.Second
	ttlUnreachable = time.Hour
)

const (
	firstPause   = 200 * time.Millisecond // after a write that failed
	longestPause = 5 * time.Second
)

// Options are what a Keeper works with. Snapshots and Store are required.
type Options struct {
	Snapshots Snapshots
	Store     Store
	Rules     Rules
	Logger    *slog.Logger // nil: slog's default
	Now       func() time.Time
}

// Keeper collects reports of probers, judges, and writes what it found. What it writes has no
// effect but by the store: it comes back to the snapshot from there.
type Keeper struct {
	o    Options
	wake wake.Signal

	mu    sync.Mutex
	judge *Judge
	taken map[federation.NetworkID]bool // observers whose verdicts were taken over
}

// New makes a keeper.
func New(o Options) *Keeper {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Keeper{o: o, wake: wake.New(), judge: NewJudge(o.Rules), taken: map[federation.NetworkID]bool{}}
}

// takeOver goes on from what is in force, before the first report from a network.
func (k *Keeper) takeOver(observer federation.NetworkID, now time.Time) {
	if k.taken[observer] {
		return
	}
	k.taken[observer] = true
	for n := range k.o.Snapshots.Latest().Networks() {
		for _, g := range n.Gateways {
			if v, known := g.VerdictOf(observer); known {
				k.judge.Adopt(federation.VerdictKey{Observer: observer, Gateway: g.Address}, v, now)
			}
		}
	}
}

// Report takes what a prober reports now. It does not block.
func (k *Keeper) Report(reports []Report) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.o.Now()
	for _, w := range reports {
		k.takeOver(w.Path.Observer, now)
		k.judge.Add(w, now)
	}
	k.wake.Notify()
}

// Left records that the prober is gone. It does not block.
func (k *Keeper) Left(prober string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.judge.Left(prober)
	k.wake.Notify()
}

// Run writes what is found until the context ends.
func (k *Keeper) Run(ctx context.Context) error {
	w := writer{k: k, written: map[HealthKey]written{}, pauses: retry.Backoff{First: firstPause, Longest: longestPause}}
	for ctx.Err() == nil {
		k.wait(ctx, w.step(ctx))
	}
	return nil
}

func (k *Keeper) wait(ctx context.Context, until time.Time) {
	pause := retry.Forever
	if !until.IsZero() {
		pause = until.Sub(k.o.Now())
	}
	retry.Await(ctx, pause, k.wake)
}

// verdicts are those of the gateways that there are.
func (k *Keeper) verdicts() (map[federation.VerdictKey]federation.Verdict, time.Time) {
	there := map[netip.AddrPort]bool{}
	for n := range k.o.Snapshots.Latest().Networks() {
		for _, g := range n.Gateways {
			there[g.Address] = true
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.judge.Keep(func(path federation.VerdictKey) bool { return there[path.Gateway] })
	return k.judge.Verdicts(k.o.Now())
}

// writer is one Run.
type writer struct {
	k       *Keeper
	written map[HealthKey]written
	pauses  retry.Backoff // after writes that failed
	failing bool          // the last write failed
	notYet  time.Time     // before which nothing is tried again
	said    map[federation.VerdictKey]federation.Verdict
}

// written is a record as the store has it.
type written struct {
	since  map[netip.AddrPort]time.Time
	renew  time.Time // when its TTL is to be restarted
	absent bool      // it is certain that there is none
}

// step writes what differs, renews what is due, and returns when to come again.
func (w *writer) step(ctx context.Context) time.Time {
	verdicts, again := w.k.verdicts()
	w.log(verdicts)
	if now := w.k.o.Now(); now.Before(w.notYet) {
		return soonest(again, w.notYet)
	}
	if err := w.write(ctx, healthOf(verdicts)); err != nil {
		if !w.failing {
			w.k.o.Logger.Warn("verdicts on gateways are not written, and stay as they were", slog.Any("err", err))
		}
		w.failing = true
		w.notYet = w.k.o.Now().Add(w.pauses.Next())
		return soonest(again, w.notYet)
	}
	w.failing = false
	w.pauses.Reset()
	for _, kept := range w.written {
		if !kept.absent {
			again = soonest(again, kept.renew)
		}
	}
	return again
}

func soonest(a, b time.Time) time.Time {
	if b.IsZero() {
		return a
	}
	return earlier(a, b)
}

func (w *writer) log(now map[federation.VerdictKey]federation.Verdict) {
	for path, v := range now {
		w.expectStored(path.Observer)
		if was, had := w.said[path]; had && was.Reachable != v.Reachable || !had && !v.Reachable {
			w.k.o.Logger.Info("the verdict on a gateway changed", slog.String("network", string(path.Observer)),
				slog.String("gateway", path.Gateway.String()), slog.Bool("reachable", v.Reachable))
		}
	}
	w.said = now
}

// expectStored takes it that the store may have records of the observer, from before this
// hub was started.
func (w *writer) expectStored(observer federation.NetworkID) {
	for _, key := range [...]HealthKey{{observer, true}, {observer, false}} {
		if _, known := w.written[key]; !known {
			w.written[key] = written{}
		}
	}
}

func healthOf(verdicts map[federation.VerdictKey]federation.Verdict) map[HealthKey]map[netip.AddrPort]time.Time {
	health := map[HealthKey]map[netip.AddrPort]time.Time{}
	for path, v := range verdicts {
		key := HealthKey{path.Observer, v.Reachable}
		if health[key] == nil {
			health[key] = map[netip.AddrPort]time.Time{}
		}
		health[key][path.Gateway] = v.Since
	}
	return health
}

// write brings the store up to date. What a gateway moves to is written
// before what it leaves, so that it is never in none: what is in both counts as
// reachable.
func (w *writer) write(ctx context.Context, health map[HealthKey]map[netip.AddrPort]time.Time) error {
	for _, gains := range []bool{true, false} {
		for key, since := range health {
			if was := w.written[key]; maps.EqualFunc(was.since, since, time.Time.Equal) || gainsAny(was.since, since) != gains {
				continue
			}
			if err := w.put(ctx, key, since); err != nil {
				return err
			}
		}
	}
	for key, kept := range w.written {
		if err := w.tend(ctx, key, kept, health[key] == nil); err != nil {
			return err
		}
	}
	return nil
}

// tend removes a record that is empty now, and renews what is due.
func (w *writer) tend(ctx context.Context, key HealthKey, kept written, empty bool) error {
	switch {
	case empty && !kept.absent:
		if err := w.k.o.Store.Remove(ctx, key); err != nil {
			return err
		}
		w.written[key] = written{absent: true}
	case !empty && !w.k.o.Now().Before(kept.renew):
		return w.renew(ctx, key, kept)
	}
	return nil
}

func gainsAny(was, now map[netip.AddrPort]time.Time) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(now)), func(g netip.AddrPort) bool { _, had := was[g]; return !had })
}

func (key HealthKey) ttl() time.Duration {
	if key.Reachable {
		return ttlReachable
	}
	return ttlUnreachable
}

func (w *writer) put(ctx context.Context, key HealthKey, since map[netip.AddrPort]time.Time) error {
	asked := w.k.o.Now()
	if err := w.k.o.Store.Put(ctx, Health{key, since}, key.ttl()); err != nil {
		return err
	}
	w.written[key] = written{since: since, renew: asked.Add(key.ttl() / 3)}
	return nil
}

// renew writes the record again where its time has ended meanwhile.
func (w *writer) renew(ctx context.Context, key HealthKey, kept written) error {
	asked := w.k.o.Now()
	err := w.k.o.Store.Renew(ctx, key)
	if errors.Is(err, ErrNoHealth) {
		return w.put(ctx, key, kept.since)
	}
	if err == nil {
		kept.renew = asked.Add(key.ttl() / 3)
		w.written[key] = kept
	}
	return err
}
