package registries

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/wake"
)

// Supervisor keeps a registry running for each attached cluster; clusters come and
// go before and during Run. One goroutine attaches, refuses, detaches, forgets and
// shows problems. All other methods are safe for concurrent use.
type Supervisor struct {
	options    Options
	saved      *savedStates
	duplicates *duplicates
	wake       wake.Signal // something to start
	dirty      wake.Signal // something to save
	ready      chan struct{}

	mu       sync.Mutex
	members  map[federation.ClusterID]*member
	pending  []func(context.Context) // what Run starts in goroutines of their own
	complete bool                    // all clusters of the start are attached
	isReady  bool
}

// New makes a supervisor; Run starts it.
func New(options Options) *Supervisor {
	options = options.withDefaults()
	return &Supervisor{
		options: options, saved: &savedStates{dir: options.Dir}, duplicates: &duplicates{of: map[string][]duplicate{}},
		wake: wake.New(), dirty: wake.New(), ready: make(chan struct{}),
		members: map[federation.ClusterID]*member{},
	}
}

// Run runs the registries until the context ends, waits for their end, saves
// what changed last and returns nil. It is called once.
func (s *Supervisor) Run(ctx context.Context) error {
	var registries, saving sync.WaitGroup
	writing, end := context.WithCancel(context.WithoutCancel(ctx)) // until no registry changes anything any more
	defer saving.Wait()
	defer end()
	saving.Go(func() { s.save(writing) })
	registries.Go(func() { s.awaitAttached(ctx) })
	for {
		for _, start := range s.takePending() {
			registries.Go(func() { start(ctx) })
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			registries.Wait()
			s.sweep()
			return nil
		}
	}
}

func (s *Supervisor) takePending() []func(context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pending := s.pending
	s.pending = nil
	return pending
}

// sweep removes the files of clusters that were detached last.
func (s *Supervisor) sweep() {
	if err := s.saved.sweepAll(); err != nil {
		s.options.Logger.Warn("saved states of detached clusters stay on disk", "err", err)
	}
}

// start has Run call the function in a goroutine of its own.
func (s *Supervisor) start(what func(context.Context)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = append(s.pending, what)
	s.wake.Notify()
}

// awaitAttached learns that the clusters of the start are all known, or
// that Grace is over.
func (s *Supervisor) awaitAttached(ctx context.Context) {
	limit := time.NewTimer(s.options.Grace)
	defer limit.Stop()
	if s.options.Attached != nil {
		select {
		case <-s.options.Attached:
		case <-limit.C:
		case <-ctx.Done():
			return
		}
	}
	s.mu.Lock()
	s.complete = true
	s.mu.Unlock()
	s.checkReady()
}

// Ready is closed once every cluster of the start has synced or is served from
// its last known good state or has none; see Options.Grace.
func (s *Supervisor) Ready() <-chan struct{} { return s.ready }

func (s *Supervisor) checkReady() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isReady || !s.complete {
		return
	}
	for _, m := range s.members {
		if !m.started.Load() {
			return
		}
	}
	s.isReady = true
	close(s.ready)
}

// Attach attaches the cluster, or applies what is new about an attached one:
// another Fingerprint runs a new registry beside the old one and swaps the two
// once the new one has read everything; another provider detaches first.
func (s *Supervisor) Attach(c Cluster) {
	if m := s.member(c.ID); m != nil && m.shard.Provider != c.Spec.Provider {
		s.Detach(c.ID)
	}
	s.memberFor(c.ID, c.Spec).attach(c)
}

// Refuse shows a cluster that cannot be attached, or whose new configuration
// cannot be used; what runs already goes on. The message holds no secret. Where nothing runs, Run shows it
// once it has read the last known good state.
func (s *Supervisor) Refuse(id federation.ClusterID, spec federation.ClusterSpec, message string) {
	s.memberFor(id, spec).refuse(message)
}

// Problem shows a problem at an attached cluster under a name of the caller's;
// nil takes it away.
func (s *Supervisor) Problem(id federation.ClusterID, name string, p *federation.Problem) {
	if m := s.member(id); m != nil {
		m.operator.problem(name, p)
	}
}

// Detach removes the cluster with everything that it said, its saved state
// included, and stops its registry. It does not wait for the registry's end.
func (s *Supervisor) Detach(id federation.ClusterID) {
	s.mu.Lock()
	m := s.members[id]
	delete(s.members, id)
	s.mu.Unlock()
	if m == nil {
		return
	}
	m.detach()
	for _, other := range s.duplicates.leave(m) {
		other.later(other.retry)
	}
	s.checkReady()
}

// Leaving shows that the cluster is being detached, or that it is not after all.
// It does nothing else.
func (s *Supervisor) Leaving(id federation.ClusterID, leaving bool) {
	if m := s.member(id); m != nil {
		m.leave(leaving)
	}
}

// Forget removes the saved states of clusters of the owner that are not attached:
// of those that were detached while no hub ran, or when the process ended. Run does it; a cluster that is attached
// before keeps its state.
func (s *Supervisor) Forget(owner string) {
	stays := func(shard federation.ShardKey) bool {
		m := s.member(shard.Cluster)
		return m != nil && m.shard == shard
	}
	s.start(func(context.Context) {
		if err := s.saved.forget(owner, stays); err != nil {
			s.options.Logger.Warn("saved states of detached clusters stay on disk", "err", err)
		}
	})
}

// Confirm accepts the change that a cluster is held for and reads the cluster again at
// once: the next list passes, whatever it lacks, and so does another cluster that
// answers in place of the known one.
func (s *Supervisor) Confirm(id federation.ClusterID) error {
	m := s.member(id)
	if m == nil || !m.confirm() {
		return fmt.Errorf("confirming cluster %s: %w", id, ErrNothingHeld)
	}
	return nil
}

// Held reports whether there is something to confirm: the cluster is held, or a newer
// configuration of it, while the cluster itself may be in any phase.
func (s *Supervisor) Held(id federation.ClusterID) bool {
	m := s.member(id)
	if m == nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return heldOf(m) != nil
}

// ErrNothingHeld is the error of a confirmation of a cluster that is not held.
var ErrNothingHeld = errors.New("the cluster is not held")

// Activity returns when the cluster's last event came and when it was last read completely;
// zero times where it never was.
func (s *Supervisor) Activity(id federation.ClusterID) (lastEvent, lastSync time.Time) {
	if m := s.member(id); m != nil {
		return m.activity()
	}
	return time.Time{}, time.Time{}
}

func (s *Supervisor) member(id federation.ClusterID) *member {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.members[id]
}

// memberFor finds or makes the member.
func (s *Supervisor) memberFor(id federation.ClusterID, spec federation.ClusterSpec) *member {
	if m := s.member(id); m != nil {
		return m
	}
	m := newMember(s, federation.ShardKey{Cluster: id, Provider: spec.Provider})
	m.operator.show(spec)
	s.mu.Lock()
	s.members[id] = m
	s.mu.Unlock()
	s.start(m.awaitGrace)
	return m
}
