// Package drainclock moves the clock of snapshots while Drains ramp, and logs what they do.
package drainclock

import (
	"context"
	"log/slog"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/retry"
)

// longest is how long the machine's clock is not looked at during a ramp: somebody may set it.
const longest = time.Minute

// Snapshots has the latest snapshot.
type Snapshots interface {
	Latest() *federation.Snapshot
}

// Sink takes the time.
type Sink interface {
	Update(federation.Edit)
}

// Options of a Keeper. Snapshots and To are needed.
type Options struct {
	Snapshots Snapshots
	To        Sink
	Now       func() time.Time // nil: time.Now
	Logger    *slog.Logger     // nil: nothing is logged
}

// Keeper tells the snapshot the time whenever a Drain takes a step. What a step is depends on
// the Drain alone, so that several hubs take the same ones.
type Keeper struct {
	options Options
	told    map[federation.ObjectKey]share
}

// share is what was logged of a Drain.
type share struct {
	now, target uint32
	ends        bool // the ramp has steps left
}

// New makes a Keeper; Run has it work.
func New(o Options) *Keeper {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Keeper{options: o, told: map[federation.ObjectKey]share{}}
}

// Run keeps the clock until the context ends.
func (k *Keeper) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		s := k.options.Snapshots.Latest()
		now := k.options.Now()
		moved, wait := due(s, now)
		if moved {
			k.options.To.Update(federation.Edit{Clock: now})
			continue // with the snapshot that has it
		}
		k.log(s)
		retry.Await(ctx, wait, s.Superseded())
	}
	return nil
}

// due reports whether a Drain does something else now than at the time of the snapshot, and how
// long until that may be, as long as there is no other snapshot.
func due(s *federation.Snapshot, now time.Time) (moved bool, wait time.Duration) {
	if now.Before(federation.ClockOf(s)) {
		now = federation.ClockOf(s) // the machine's clock was set back: the snapshot's waits for it
	}
	wait = retry.Forever
	for o := range s.Objects().Of(federation.DrainKind) {
		r := federation.RampOf(o)
		if r.At(now) != r.At(federation.ClockOf(s)) {
			return true, 0
		}
		next, more := r.Next(now)
		if !more {
			continue
		}
		wait = min(wait, max(next.Sub(now), time.Millisecond), longest)
	}
	return false, wait
}

// log tells what is new about Drains: one that begins or changes, a step, the last step, and
// one that was deleted.
func (k *Keeper) log(s *federation.Snapshot) {
	there := map[federation.ObjectKey]bool{}
	for o := range s.Objects().Of(federation.DrainKind) {
		there[o.Key] = true
		r := federation.RampOf(o)
		_, more := r.Next(federation.ClockOf(s))
		now := share{now: r.At(federation.ClockOf(s)), target: r.To, ends: more}
		before, known := k.told[o.Key]
		if known && before == now {
			continue
		}
		k.told[o.Key] = now
		k.options.Logger.Info(event(before, now, known), slog.String("object", o.Key.Title()),
			slog.Int("percent", int(now.now)), slog.Int("target", int(now.target)))
	}
	for key := range k.told {
		if !there[key] {
			delete(k.told, key)
			k.options.Logger.Info("drain ended", slog.String("object", key.Title()))
		}
	}
}

// event is what happened to a Drain.
func event(before, now share, known bool) string {
	switch {
	case !known && now.ends:
		return "drain started, its ramp goes on"
	case !known:
		return "drain started"
	case before.target != now.target:
		return "drain changed"
	case before.ends && !now.ends:
		return "drain reached its target"
	}
	return "drain took a step"
}
