package etcd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/internal/retry"
)

// farBehind is from how many commits on one merged Update is given.
const farBehind = 100

// retryAfter is how long the source waits before it restarts a broken watch.
const retryAfter = 200 * time.Millisecond

// Run is part of config.Source. It gives one Update for each commit, or one for
// many when it is far behind. Meanwhile it makes checkpoints and collects what
// is not needed. It returns an error when the store holds nothing good at the
// start.
func (c *Config) Run(ctx context.Context, to config.Sink) error {
	f := newWatcher(c, to)
	ctx, cancel := context.WithCancel(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer cancel()
	beside.Go(func() { f.watchMembers(ctx) })
	beside.Go(func() { f.c.points.run(ctx) })
	pauses := retry.Backoff{First: retryAfter, Longest: c.o.Probe}
	for ctx.Err() == nil {
		err := f.follow(ctx)
		if ctx.Err() != nil {
			break
		}
		var broken *damage
		if f.shown.state == nil && errors.As(err, &broken) {
			return fmt.Errorf("reading the configuration: %w", err)
		}
		if f.since.IsZero() {
			pauses.Reset() // it was well meanwhile
		}
		f.lost(err)
		pauses.Wait(ctx)
	}
	return nil
}

// watcher is one Run.
type watcher struct {
	c          *Config
	to         config.Sink
	shown      view // what was given; without a state: nothing yet
	since      time.Time
	swept      time.Time
	first      bool                      // the full Update was given
	leases     map[string]int64          // etcd's revision of each leased key that is shown
	badLeases  map[string]config.Problem // by leased key
	seen       map[string]unreferenced   // staged transactions, by id
	moved      burst                     // what the watch of leases said and is not shown
	gaps       map[int64]bool            // revisions whose record was found missing
	looked     view                      // in which duplicates were looked for
	duplicates []config.Problem          // found there

	finding  sync.Mutex                  // guards the rest
	problems map[string][]config.Problem // by who found them
	said     []config.Problem
}

func newWatcher(c *Config, to config.Sink) *watcher {
	return &watcher{
		c: c, to: &oneAtATime{to: to}, seen: map[string]unreferenced{}, problems: map[string][]config.Problem{},
		leases: map[string]int64{}, badLeases: map[string]config.Problem{}, gaps: map[int64]bool{},
	}
}

// oneAtATime is a sink for several goroutines.
type oneAtATime struct {
	mu sync.Mutex
	to config.Sink
}

func (s *oneAtATime) Update(u config.Update) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to.Update(u)
}

func (s *oneAtATime) Trouble(p []config.Problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to.Trouble(p)
}

// The finders of problems.
const (
	byLink    = "1 link"
	byMember  = "1 member"
	byStorage = "2 storage"
	byState   = "3 state"
	byLeased  = "4 leased"
	byShadow  = "5 shadow"
	bySweep   = "6 sweep"
)

// found says what a finder found, in the place of what it found before.
func (f *watcher) found(finder string, problems []config.Problem) {
	f.finding.Lock()
	defer f.finding.Unlock()
	f.problems[finder] = problems
	var all []config.Problem
	for _, name := range slices.Sorted(maps.Keys(f.problems)) {
		all = append(all, f.problems[name]...)
	}
	if !slices.Equal(all, f.said) {
		f.said = all
		f.to.Trouble(slices.Clone(all))
	}
}

func (f *watcher) isFound(finder, code string) bool {
	f.finding.Lock()
	defer f.finding.Unlock()
	return len(f.problems[finder]) > 0 && f.problems[finder][0].Code == code
}

// lost says that the store is not followed at the moment.
func (f *watcher) lost(err error) {
	if f.since.IsZero() {
		f.since = f.c.o.Now()
	}
	if errors.Is(err, errEnded) {
		return // storage says so, and no other hub can have written meanwhile
	}
	p := config.Problem{Code: codeUnreachable, Message: fmt.Sprintf(
		"the store does not answer since %s, what is shown may be older than what it holds: %s", f.since.UTC().Format(time.RFC3339), err)}
	var broken *damage
	switch {
	case errors.As(err, &broken):
		p = config.Problem{Code: codeHistory, Message: "what was in force before stays: " + err.Error()}
	case errors.Is(err, errOtherStore):
		p = config.Problem{Code: codeOtherStore, Message: "what was in force before stays: " + err.Error()}
	}
	if !f.isFound(byLink, p.Code) {
		f.found(byLink, []config.Problem{p})
	}
}

// follow reads the store and follows it until it does not answer as it should.
func (f *watcher) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f.moved.take() // everything is listed
	p, leased, err := f.list(ctx)
	if err != nil {
		return err
	}
	watching := clientv3.WithRequireLeader(ctx)
	heads, err := f.c.read.watch(watching, headKey, clientv3.WithRev(p.at+1))
	if err != nil {
		return err
	}
	leases, err := f.c.read.watch(watching, leasedRoot, clientv3.WithPrefix(), clientv3.WithRev(p.at+1))
	if err != nil {
		return err
	}
	if err := f.catchUp(ctx, p); err != nil {
		return err
	}
	f.leasedListed(leased)
	f.since = time.Time{}
	f.found(byLink, nil)
	probe := time.NewTicker(f.c.o.Probe)
	defer probe.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case answer, open := <-heads:
			err = broken(answer, open)
			if err == nil {
				err = f.headMoved(ctx)
			}
		case answer, open := <-leases:
			err = broken(answer, open)
			if err == nil {
				f.moved.add(answer.Events)
			}
		case <-f.moved.due():
			f.showMoved()
			f.findLeased()
		case <-f.c.states.made:
			err = f.showMade(ctx)
		case <-probe.C:
			err = f.probe(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// watch begins a watch. A member that accepts it and stays silent does not hold
// the watcher up: it tries again, at another one.
func (r records) watch(ctx context.Context, key string, o ...clientv3.OpOption) (clientv3.WatchChan, error) {
	begun := make(chan clientv3.WatchChan, 1)
	go func() { begun <- r.client.Watch(ctx, key, o...) }()
	limit := time.NewTimer(2 * tryFor)
	defer limit.Stop()
	select {
	case w := <-begun:
		return w, nil
	case <-limit.C:
		return nil, errors.New("no etcd member accepted the watch")
	}
}

func broken(answer clientv3.WatchResponse, open bool) error {
	if !open {
		return errors.New("the watch ended")
	}
	return answer.Err() // compacted, no leader, cancelled: everything is read again
}

// list reads the head and what is leased, all as of one moment.
func (f *watcher) list(ctx context.Context) (place, []*mvccpb.KeyValue, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*f.c.o.Patience)
	defer cancel()
	answer, err := f.c.client.Txn(ctx).Then(append(headOps(), clientv3.OpGet(leasedRoot, clientv3.WithPrefix()))...).Commit()
	if err != nil {
		return place{}, nil, err
	}
	p, err := f.c.read.readPlace(answer)
	return p, answer.Responses[2].GetResponseRange().Kvs, err
}

func (f *watcher) headMoved(ctx context.Context) error {
	looking, cancel := context.WithTimeout(ctx, f.c.o.Patience)
	defer cancel()
	p, err := f.c.read.findHead(looking)
	if err != nil {
		return err
	}
	return f.catchUp(ctx, p)
}

// catchUp gives what changed up to the place.
func (f *watcher) catchUp(ctx context.Context, p place) error {
	reading, cancel := context.WithTimeout(ctx, max(time.Minute, 2*f.c.o.Patience))
	defer cancel()
	newest, err := f.c.states.advance(reading, p)
	if err != nil {
		return err
	}
	if f.shown.state == nil {
		f.shown = view{newest, emptyState().objects}
		f.found(byState, suspectsOf(newest))
		return nil // it is given with what is leased
	}
	f.show(newest)
	return nil
}

// showMade gives what was committed here, without waiting for the watch, which
// may go to a member that is gone.
func (f *watcher) showMade(ctx context.Context) error {
	if newest := f.c.states.newest.Load(); newest.revision > f.shown.revision {
		f.show(newest)
		return nil
	}
	return f.headMoved(ctx)
}

// show gives the commits up to the newest state. What the watch of leases reported before is shown before.
func (f *watcher) show(newest *state) {
	if newest != f.shown.state {
		f.showMoved()
	}
	f.publishUpTo(newest)
	f.found(byState, suspectsOf(newest))
	f.findLeased()
	if f.c.points.due(newest) {
		f.c.points.request(checkpointRequest{state: newest})
	}
}

// publishUpTo publishes each commit up to the newest state, or all of them as one.
func (f *watcher) publishUpTo(newest *state) {
	steps := 0
	whole := false
	for s := f.shown.state; s != newest && s != nil && steps <= farBehind; s = s.next.Load() {
		if next := s.next.Load(); next == nil || next.whole {
			whole = true
			break
		}
		steps++
	}
	if whole || steps > farBehind {
		next := view{newest, f.shown.leased}
		f.publish(next, next.differing(f.shown))
		return
	}
	for f.shown.state != newest {
		next := f.shown.next.Load()
		f.publish(view{next, f.shown.leased}, next.changed)
	}
}

func (f *watcher) publish(next view, keys []federation.ObjectKey) {
	u := config.Update{Revision: next.revision, Events: next.since(f.shown, keys)}
	moved := next.revision != f.shown.revision
	f.shown = next
	if moved || len(u.Events) > 0 {
		f.to.Update(u)
	}
}

func suspectsOf(s *state) []config.Problem {
	var problems []config.Problem
	s.suspects.Walk(func(_ string, p config.Problem) bool {
		problems = append(problems, p)
		return false
	})
	return problems
}

// probe asks the store whether it is there and whether the watch has missed
// something, and does what is due.
func (f *watcher) probe(ctx context.Context) error {
	if err := f.headMoved(ctx); err != nil {
		return err
	}
	if now := f.c.o.Now(); now.Sub(f.swept) >= f.c.o.Sweep {
		f.swept = now
		found, err := f.sweep(ctx)
		if err != nil {
			return err
		}
		f.found(bySweep, found)
	}
	return nil
}
