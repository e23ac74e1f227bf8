package registries

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/wake"
)

// member is one attached cluster.
type member struct {
	supervisor *Supervisor
	options    Options // the supervisor's
	shard      federation.ShardKey
	operator   *operator
	saver      *saver
	started    atomic.Bool // the start need not wait for it
	unsaved    bool        // its state could not be written; only save looks at it
	load       func()      // reads the last known good state, the first time it is called; not with mu held

	mu        sync.Mutex
	current   *instance // nil: none was usable yet
	candidate *instance // takes over with its first full edit
	known     lastKnown
	status    shownStatus
	synced    bool   // a registry has read the cluster since the start
	refused   string // why the newest configuration is not used; empty: it is
	refusing  bool   // that is shown once the last known good state was read
	detached  bool
	lastEvent time.Time
	lastSync  time.Time
}

func newMember(s *Supervisor, shard federation.ShardKey) *member {
	m := &member{
		supervisor: s, options: s.options, shard: shard,
		operator: &operator{
			cluster: shard.Cluster,
			writer:  s.options.Aggregate.Open(federation.ShardKey{Cluster: shard.Cluster, Provider: federation.Operator}),
		},
		saver:  &saver{shard: shard, files: s.saved, snapshots: s.options.Aggregate, now: s.options.Now, dirty: s.dirty},
		known:  lastKnown{shard: shard, snapshots: s.options.Aggregate},
		status: shownStatus{reported: federation.RegistryStatus{Phase: federation.Pending}},
	}
	m.load = sync.OnceFunc(m.restore)
	return m
}

// restore reads the last known good state: every registry and every
// reader of the state wait for that.
func (m *member) restore() {
	state, err := m.supervisor.saved.load(m.shard)
	if err != nil {
		m.options.Logger.Warn("the last known good state is not used", "cluster", m.shard.Cluster, "err", err)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known.restored = state
}

func (m *member) attach(c Cluster) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.detached {
		return
	}
	m.operator.show(c.Spec)
	m.refused = ""
	m.saver.own(c.Owner, m.synced)
	if m.candidate == nil || m.candidate.cluster.Fingerprint != c.Fingerprint {
		m.status.notice = ""
		m.dropCandidate()
	}
	switch {
	case m.candidate != nil:
	case m.current != nil && m.current.cluster.Fingerprint == c.Fingerprint:
	case m.current == nil || !m.current.synced:
		m.startInstead(c)
	default:
		m.candidate = m.newInstance(c)
	}
	m.publishStatus()
}

func (m *member) dropCandidate() {
	if m.candidate != nil {
		m.candidate.stop()
		m.candidate = nil
	}
}

// startInstead puts a registry in the place of one that has said nothing yet.
func (m *member) startInstead(c Cluster) {
	if m.current != nil {
		m.current.stop()
	}
	m.status.reported = federation.RegistryStatus{Phase: federation.Pending}
	m.current = m.newInstance(c)
}

func (m *member) newInstance(c Cluster) *instance {
	i := &instance{member: m, cluster: c, writer: m.options.Aggregate.Open(m.shard), kick: wake.New(), confirmed: c.Confirmed}
	m.supervisor.start(i.run)
	return i
}

func (m *member) refuse(message string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refused = message
	if m.current != nil {
		showRefused(m)
		return
	}
	if m.refusing {
		return
	}
	m.refusing = true
	m.supervisor.start(func(context.Context) {
		m.load()
		m.mu.Lock()
		defer m.mu.Unlock()
		m.refusing = false
		showRefused(m)
	})
}

// showRefused shows why the newest configuration is not used, unless it was replaced meanwhile. The
// caller holds member.mu.
func showRefused(m *member) {
	switch {
	case m.detached || m.refused == "":
	case m.current != nil:
		m.status.notice = "the newer configuration is not in use: " + m.refused
		m.publishStatus()
	default:
		m.fail(m.refused)
	}
}

// fail reports what no retry heals. The start waits no longer.
func (m *member) fail(message string) {
	m.status.reported = federation.RegistryStatus{Phase: federation.Failed, Message: message}
	m.finishStart()
}

// finishStart ends the waiting for the cluster: what is known of it is published.
func (m *member) finishStart() {
	m.serveRestored()
	m.publishStatus()
	if !m.started.Swap(true) {
		m.supervisor.checkReady()
	}
}

// awaitGrace serves the last known good state of a cluster that does not answer
// in time.
func (m *member) awaitGrace(ctx context.Context) {
	timer := time.NewTimer(m.options.Grace)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return
	}
	m.load()
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.detached {
		m.finishStart()
	}
}

func (m *member) serveRestored() {
	if m.known.restored == nil || m.known.served || m.synced {
		return
	}
	m.known.served = true
	e := m.known.restored.edit()
	status := m.compose()
	e.Status = &status
	m.update(e)
	m.shown(status)
	m.options.Logger.Warn("serving the last known good state", "cluster", m.shard.Cluster, "saved", m.known.restored.Saved)
}

// update writes as the cluster's registry.
func (m *member) update(e federation.Edit) {
	if m.current != nil {
		m.current.writer.Update(e)
		return
	}
	w := m.options.Aggregate.Open(m.shard)
	w.Update(e)
	w.Close()
}

func (m *member) detach() {
	m.end()
	m.options.Logger.Info("cluster detached", "cluster", m.shard.Cluster, "provider", m.shard.Provider)
	m.supervisor.saved.doom(m.shard)
	m.supervisor.start(func(context.Context) {
		if err := m.supervisor.saved.sweep(m.shard); err != nil {
			m.options.Logger.Warn("the saved state of a detached cluster stays on disk", "cluster", m.shard.Cluster, "err", err)
		}
	})
}

// end removes what the cluster said. Nothing that it says later counts.
func (m *member) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.detached = true
	m.saver.gone.Store(true)
	for _, i := range []*instance{m.current, m.candidate} {
		if i != nil {
			i.stop()
		}
	}
	m.operator.remove()
}

// confirm accepts what is held, and reports whether anything was.
func (m *member) confirm() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := heldOf(m)
	switch {
	case i == nil:
		return false
	case i.hold != nil:
		i.hold.release = true
		i.kick.Notify()
	default:
		i.foreign, i.confirmed = false, true
		i.attempt.over = true
		i.attempt.cancel()
	}
	return true
}

// heldOf is the instance that waits for a confirmation. The caller holds member.mu.
func heldOf(m *member) *instance {
	for _, i := range []*instance{m.current, m.candidate} {
		if i != nil && (i.hold != nil || i.foreign) {
			return i
		}
	}
	return nil
}

func (m *member) leave(leaving bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.detached && m.status.leaving != leaving {
		m.status.leaving = leaving
		m.publishStatus()
	}
}

func (m *member) activity() (lastEvent, lastSync time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	lastEvent, lastSync = m.lastEvent, m.lastSync
	if m.current == nil {
		return lastEvent, lastSync
	}
	active, ok := m.current.registry.(Active)
	if !ok {
		return lastEvent, lastSync
	}
	event, sync := active.Activity()
	if event.After(lastEvent) {
		lastEvent = event
	}
	if sync.After(lastSync) {
		lastSync = sync
	}
	return lastEvent, lastSync
}
