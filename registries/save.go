package registries

import (
	"context"
	"time"

	"isthmus.dev/isthmus/federation"
)

// saveDelay is how long changes are collected before they are written, in one
// transaction per cluster: a change is on disk within 1 s.
const saveDelay = 800 * time.Millisecond

// saveAgain is the pause after a write that failed.
const saveAgain = 5 * time.Second

// save writes what changed until the context ends.
func (s *Supervisor) save(ctx context.Context) {
	timer := time.NewTimer(saveDelay)
	timer.Stop()
	defer timer.Stop()
	waiting := false
	for {
		select {
		case <-s.dirty:
			if !waiting {
				waiting = true
				timer.Reset(saveDelay)
			}
		case <-timer.C:
			waiting = !s.saveDirty()
			if waiting {
				timer.Reset(saveAgain)
			}
		case <-ctx.Done():
			return
		}
	}
}

// saveDirty writes the state of every cluster that changed, and tells whether
// all of it is on disk.
func (s *Supervisor) saveDirty() (all bool) {
	if s.options.Dir == "" {
		return true
	}
	s.mu.Lock()
	members := make([]*member, 0, len(s.members))
	for _, m := range s.members {
		members = append(members, m)
	}
	s.mu.Unlock()
	all = true
	for _, m := range members {
		if err := m.saveState(); err != nil {
			all = false
			s.options.Logger.Warn("the last known good state was not saved", "cluster", m.shard.Cluster, "err", err, "retryIn", saveAgain)
		}
	}
	return all
}

// saveState writes what is not on disk yet. After a failure the file is written
// anew as a whole.
func (m *member) saveState() error {
	m.mu.Lock()
	what, owner := m.unsaved, m.owner
	m.unsaved = unsaved{}
	m.mu.Unlock()
	if what.empty() {
		return nil
	}
	err := m.writeState(&what, owner)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.written = err == nil
	m.unsaved.whole = m.unsaved.whole || err != nil
	return err
}

// mark notes what is to be written. The first write of a process is a new file,
// whatever the old one holds. The caller holds mu.
func (m *member) mark(note func(*unsaved)) {
	m.unsaved.whole = m.unsaved.whole || !m.written // first: what is written as a whole needs no notes
	note(&m.unsaved)
	signal(m.supervisor.dirty)
}

func (m *member) writeState(what *unsaved, owner string) error {
	snapshot := m.options.Aggregate.Latest()
	records, err := what.records(snapshot, m.shard)
	if err != nil {
		return err
	}
	c := savedChange{whole: what.whole, header: m.savedHeader(snapshot, owner), records: records}
	defer m.supervisor.saved.lock(m.shard)()
	if m.gone.Load() {
		return nil
	}
	return m.supervisor.saved.write(m.shard, c, m.options.Now())
}

func (m *member) savedHeader(s *federation.Snapshot, owner string) savedHeader {
	h := savedHeader{Cluster: m.shard.Cluster, Provider: m.shard.Provider, Owner: owner}
	if c, ok := s.Cluster(m.shard.Cluster); ok {
		h.UID, h.Network = c.Identity.UID, c.Identity.Network
	}
	return h
}
