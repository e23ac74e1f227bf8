// Package leaderelection decides which of several hubs over one store does what only one may do.
package leaderelection

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"isthmus.dev/isthmus/internal/retry"
	"isthmus.dev/isthmus/internal/wake"
)

// Record is one value of the store that all hubs share, written only where nobody else
// wrote meanwhile; etcd.Shared is one.
type Record interface {
	Load(ctx context.Context) (value []byte, revision int64, err error)
	Save(ctx context.Context, value []byte, revision int64) (saved bool, err error)
}

// Options say who the hub is. Record is nil for a hub that is alone: it is the leader.
type Options struct {
	Hub    string // of several over one store
	What   string // only one does, for the log
	Record Record
	TTL    time.Duration // after which another hub takes over from one that was killed; 0: 15 s
	Logger *slog.Logger
}

// Elector is whether this hub is the leader. It needs no clock that hubs share: each measures
// how long it saw the same entry.
type Elector struct {
	o       Options
	changed wake.Signal

	mu    sync.Mutex
	until time.Time // this hub is the leader before it
}

// New makes an Elector that Run keeps.
func New(o Options) *Elector {
	o.TTL = cmp.Or(o.TTL, 15*time.Second)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return &Elector{o: o, changed: wake.New()}
}

// Changed has a value after Leads may have changed, for one reader.
func (e *Elector) Changed() <-chan struct{} { return e.changed }

// Leads reports whether this hub is the leader now. A leader that cannot renew its entry stops
// before another one may take over.
func (e *Elector) Leads() bool {
	if e.o.Record == nil {
		return true
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return time.Now().Before(e.until)
}

// entry is what the record says. Each renewal is another value.
type entry struct {
	Hub  string `json:"hub"`
	Term int64  `json:"term"` // grows with each renewal; 0: nobody is the leader
}

// firstSeen is the entry as it was seen first.
type firstSeen struct {
	entry
	revision int64
	since    time.Time
}

// Run takes part in the election until the context ends. Then it lets another hub have it.
func (e *Elector) Run(ctx context.Context) error {
	if e.o.Record == nil {
		return nil
	}
	var seen firstSeen
	failed := false
	for ctx.Err() == nil {
		err := e.turn(ctx, &seen)
		if err != nil && ctx.Err() == nil && !failed {
			e.o.Logger.Warn("the store does not say which hub is the leader", slog.String("task", e.o.What), slog.Any("err", err))
		}
		failed = err != nil
		retry.Sleep(ctx, e.o.TTL/5)
	}
	e.release(context.WithoutCancel(ctx))
	return nil
}

// turn renews the entry, or takes it over where its leader was silent for the TTL.
func (e *Elector) turn(ctx context.Context, seen *firstSeen) error {
	asked := time.Now()
	value, revision, err := e.o.Record.Load(ctx)
	if err != nil {
		return fmt.Errorf("reading the entry: %w", err)
	}
	if revision != seen.revision || seen.since.IsZero() {
		*seen = firstSeen{revision: revision, since: asked}
		_ = json.Unmarshal(value, &seen.entry) // what cannot be read has no leader
	}
	if seen.Hub != e.o.Hub && seen.Term > 0 && asked.Sub(seen.since) < e.o.TTL {
		e.lead(time.Time{}, seen.Hub)
		return nil
	}
	next, err := json.Marshal(entry{e.o.Hub, seen.Term + 1})
	if err != nil {
		return fmt.Errorf("writing the entry: %w", err)
	}
	saved, err := e.o.Record.Save(ctx, next, seen.revision)
	if err != nil || !saved {
		seen.since = time.Time{} // it is read again
		return err
	}
	seen.Hub, seen.Term, seen.since = e.o.Hub, seen.Term+1, time.Time{}
	e.lead(asked.Add(e.o.TTL*4/5), e.o.Hub)
	return nil
}

// lead notes until when this hub is the leader.
func (e *Elector) lead(until time.Time, leader string) {
	e.mu.Lock()
	was := time.Now().Before(e.until)
	e.until = until
	e.mu.Unlock()
	if is := !until.IsZero(); was != is {
		e.o.Logger.Info("the leader changed", slog.String("task", e.o.What), slog.String("hub", leader), slog.Bool("leads", is))
		e.changed.Notify()
	}
}

// goodbye is how long a hub that stops tries to let another one take over at once.
const goodbye = 500 * time.Millisecond

func (e *Elector) release(ctx context.Context) {
	if !e.Leads() {
		return
	}
	e.lead(time.Time{}, "")
	ctx, cancel := context.WithTimeout(ctx, goodbye)
	defer cancel()
	value, revision, err := e.o.Record.Load(ctx)
	var now entry
	if err == nil && json.Unmarshal(value, &now) == nil && now.Hub == e.o.Hub {
		_, _ = e.o.Record.Save(ctx, nil, revision) // else its time ends
	}
}
