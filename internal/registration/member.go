package registration

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/internal/retry"
	"isthmus.dev/isthmus/internal/wake"
)

// awaitsReport is the reason for which a workload is unhealthy whose agent has not reported
// its health yet.
const awaitsReport = "its agent has not reported its health yet, for which it needs a readinessProbe"

// member is a proxy with its record. One goroutine writes it.
type member struct {
	keeper   *Keeper
	replaces string          // node of the proxy that left the record to this one
	counted  account         // among whose members it is
	sharing  *accountMembers // these members
	wake     wake.Signal     // has one value when something changed
	back     wake.Signal     // has one value when the proxy is back, and nothing was renewed while it was away
	ended    chan struct{}   // closed when the proxy is refused
	dropped  chan struct{}   // closed when the keeper forgets it

	// What follows is guarded by the keeper's mu.
	proxy       Proxy
	users       int       // streams of the proxy
	left        time.Time // when the last of them ended
	hasReported bool      // the agent said something about its health
	health      health    // as it said last
	refusal     error     // why it ended
}

// rejoin counts one more stream of the proxy; the caller holds the keeper's mu.
func (m *member) rejoin(p Proxy) {
	m.users++
	m.proxy = p
	m.wake.Notify()
	m.back.Notify()
}

// Membership is one stream of a registered proxy.
type Membership struct {
	member *member
	keeper *Keeper
	gone   bool
}

// Report takes what the proxy's agent found of the workload's health; unhealthy is the reason, or
// empty. It does not block.
func (s *Membership) Report(unhealthy string) {
	m := s.member
	s.keeper.mu.Lock()
	defer s.keeper.mu.Unlock()
	if now := (health{unhealthy}); !m.hasReported || m.health != now {
		m.hasReported, m.health = true, now
		m.wake.Notify()
	}
}

// Ended is closed when the proxy may not be registered any more; Err is the reason.
func (s *Membership) Ended() <-chan struct{} { return s.member.ended }

// Err is why the membership ended; nil before that.
func (s *Membership) Err() error {
	s.keeper.mu.Lock()
	defer s.keeper.mu.Unlock()
	return s.member.refusal
}

// Leave ends the stream's part in the registration. The record is deleted after the grace
// period, unless the proxy is back before.
func (s *Membership) Leave() {
	s.keeper.mu.Lock()
	defer s.keeper.mu.Unlock()
	if s.gone {
		return
	}
	s.gone = true
	s.member.users--
	if s.member.users == 0 {
		s.member.left = time.Now()
		s.member.wake.Notify()
	}
}

// run writes the record and keeps its lease until the proxy has been away for the grace
// period, is refused, or the context ends.
func (m *member) run(ctx context.Context) {
	k := m.keeper
	defer func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.drop(m)
		k.uncount(m)
	}()
	w := writer{member: m, backoff: retry.Backoff{First: pace, Longest: max(k.o.Grace/3, pace)}}
	for ctx.Err() == nil {
		now, done := m.now()
		if done {
			return
		}
		pause := k.o.Grace / 3
		if now.users > 0 {
			var err error
			pause, err = w.step(ctx, now)
			if err != nil {
				m.end(err)
				return
			}
		}
		m.rest(ctx, pause)
	}
}

// rest waits for the pause, or until something changed; never shorter than the pace.
func (m *member) rest(ctx context.Context, pause time.Duration) {
	if m.sleep(ctx, min(pause, pace), nil) {
		m.sleep(ctx, max(pause-pace, 0), m.wake)
	}
}

// sleep ends early when there is a value. It reports false if the context ends before, or the keeper forgets the member.
func (m *member) sleep(ctx context.Context, d time.Duration, early <-chan struct{}) bool {
	return retry.Await(ctx, d, early, m.dropped) && !m.isDropped()
}

// moment is what of a member counts for a write.
type moment struct {
	proxy       Proxy
	users       int
	left        time.Time
	hasReported bool
	health      health
}

// now is the member as it is; done: its proxy has been away for the grace period, or its record is
// another proxy's.
func (m *member) now() (moment, bool) {
	m.keeper.mu.Lock()
	defer m.keeper.mu.Unlock()
	away := m.users == 0 && time.Since(m.left) >= m.keeper.o.Grace
	return moment{m.proxy, m.users, m.left, m.hasReported, m.health}, m.isDropped() || away
}

func (m *member) isDropped() bool {
	select {
	case <-m.dropped:
		return true
	default:
		return false
	}
}

// end refuses the proxy.
func (m *member) end(err error) {
	m.keeper.mu.Lock()
	defer m.keeper.mu.Unlock()
	m.refusal = m.keeper.refused(m.proxy, err)
	close(m.ended)
}

// writer writes the record of one member.
type writer struct {
	*member
	written string // the record's manifest; empty: nothing was written
	told    bool   // that it was written
	failing bool
	backoff retry.Backoff
}

// step writes the record if it has to change, else renews its lease, and returns when to do so
// again. The error is a *Refusal.
func (w *writer) step(ctx context.Context, now moment) (time.Duration, error) {
	o := w.keeper.o
	record, err := w.due(now)
	if err != nil || record == nil {
		w.release(ctx, now.proxy)
		return o.Grace / 3, err
	}
	err = w.keep(ctx, record)
	var refusal *Refusal
	switch {
	case errors.As(err, &refusal):
		return 0, refusal
	case err != nil:
		if !w.failing && ctx.Err() == nil {
			o.Logger.Warn(words(now.proxy).failing, slog.String("node", now.proxy.Node), slog.Any("err", err))
		}
		w.failing = true
		return w.backoff.Next(), nil
	}
	w.failing = false
	w.backoff.Reset()
	return o.Grace / 3, nil
}

// due is the record that the store should have now; nil: none. The error is a *Refusal.
func (w *writer) due(now moment) (*config.Object, error) {
	there := storedAt(w.keeper.o.Views.Latest(), now.proxy)
	if err := w.mayHave(now.proxy, there); err != nil {
		return nil, err
	}
	says := now.health
	if (now.proxy.Probed || now.proxy.Group == "") && !now.hasReported {
		says.unhealthy = awaitsReport
		if there.node == now.proxy.Node {
			says.unhealthy = there.unhealthy
		}
	}
	record, err := w.keeper.recordOf(now.proxy, says)
	if isRefusal(err, NoEntry) {
		return nil, nil // the WorkloadEntry was deleted, and may come back
	}
	return record, err
}

// mayHave refuses a proxy whose entry is another's, or was not made by a proxy.
func (w *writer) mayHave(p Proxy, there stored) error {
	switch {
	case !there.exists, there.node == p.Node, w.replaces != "" && there.node == w.replaces:
		return nil
	case !there.leased:
		return refuse(Taken, "the WorkloadEntry %s/%s was applied: delete it, or take ISTIO_META_AUTO_REGISTER_GROUP from the proxy",
			p.Namespace, p.key().Name)
	}
	return taken(p, there.node)
}

// keep renews the lease of what is written already, or writes what is due when its turn has come.
func (w *writer) keep(ctx context.Context, record *config.Object) error {
	if string(record.Manifest) == w.written {
		err := w.renew(ctx, record.Key)
		if !errors.Is(err, config.ErrNoLease) {
			return err
		}
	}
	if !w.takeTurn(ctx, record.Key) {
		return ctx.Err()
	}
	defer w.endTurn()
	now, done := w.now()
	if done || now.users == 0 {
		return nil
	}
	record, err := w.due(now)
	if err != nil || record == nil {
		w.wake.Notify() // the next step does what is due then
		return nil
	}
	return w.write(ctx, now.proxy, record)
}

// renew does not wait for writes. The record of a proxy that is away is left to end.
func (w *writer) renew(ctx context.Context, key federation.ObjectKey) error {
	if !w.keeper.renewals.take(ctx) {
		return ctx.Err()
	}
	defer w.keeper.renewals.free()
	if now, done := w.now(); done || now.users == 0 {
		return nil
	}
	_, err := w.keeper.o.Leases.Renew(ctx, key)
	return err
}

// takeTurn waits for its turn to write. Writes of one account leave places for those of others. While it waits, what is
// written is renewed: however many proxies connect or change, no record of a connected one ends. The wait ends without a
// turn when there is nothing to write any more.
func (w *writer) takeTurn(ctx context.Context, key federation.ObjectKey) bool {
	ctx, stop := context.WithCancel(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer stop()
	beside.Go(func() {
		defer stop()
		w.attend(ctx, key)
	})
	if !w.sharing.writes.take(ctx) {
		return false
	}
	if !w.keeper.writes.take(ctx) {
		w.sharing.writes.free()
		return false
	}
	return true
}

// attend renews what is written until the context ends, the keeper forgets the member, or the proxy has been away for the
// grace period.
func (w *writer) attend(ctx context.Context, key federation.ObjectKey) {
	grace := w.keeper.o.Grace
	for {
		now, done := w.now()
		if done {
			return
		}
		pause := grace / 3
		if now.users == 0 {
			pause = min(pause, time.Until(now.left.Add(grace)))
		}
		if !w.sleep(ctx, pause, w.back) {
			return
		}
		if w.written != "" {
			_ = w.renew(ctx, key) // what cannot be renewed is written soon
		}
	}
}

func (w *writer) endTurn() {
	w.keeper.writes.free()
	w.sharing.writes.free()
}

func (w *writer) write(ctx context.Context, p Proxy, record *config.Object) error {
	problems, err := w.keeper.register(ctx, p, record)
	if err != nil {
		return err
	}
	if len(problems) > 0 {
		first := problems[0]
		if passing[first.Code] {
			return errors.New(first.Message)
		}
		return refuse(Invalid, "%s: %s", first.Field, first.Message)
	}
	if !w.told {
		w.told = true
		w.keeper.o.Logger.Info(words(p).written, slog.String("node", p.Node), slog.String("object", p.key().Title()))
	}
	w.written = string(record.Manifest)
	return nil
}

// passing are the codes of problems of the store, not of the entry.
var passing = map[apply.Code]bool{
	apply.StorageFull: true, apply.StorageNotWritable: true, apply.StoreRefused: true, apply.Unavailable: true, apply.Busy: true,
}

// release deletes the record of a proxy that may not have it any more, or needs none.
func (w *writer) release(ctx context.Context, p Proxy) {
	if w.written == "" {
		return
	}
	w.written = ""
	if err := w.keeper.o.Leases.Release(ctx, p.key()); err != nil {
		w.keeper.o.Logger.Warn(words(p).late, slog.String("object", p.key().Title()), slog.Any("err", err))
	}
}
