package registries

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/recordfile"
	"isthmus.dev/isthmus/internal/wake"
)

// save writes what changed until the context ends, and once more then.
func (s *Supervisor) save(ctx context.Context) {
	logged := func(error) {} // by noteSaved, for each cluster
	recordfile.Save(ctx, s.dirty, s.saveDirty, logged)
}

// saveDirty writes the state of every cluster that changed.
func (s *Supervisor) saveDirty() (failed error) {
	if s.options.Dir == "" {
		return nil
	}
	s.mu.Lock()
	members := make([]*member, 0, len(s.members))
	for _, m := range s.members {
		members = append(members, m)
	}
	s.mu.Unlock()
	for _, m := range members {
		err := m.saver.save()
		failed = errors.Join(failed, err)
		m.noteSaved(err)
	}
	return failed
}

// noteSaved shows, and logs, that the state began or ceased to be not on disk. The cluster
// is served all the same.
func (m *member) noteSaved(err error) {
	failing, cluster := err != nil, m.shard.Cluster
	if failing == m.unsaved || m.saver.gone.Load() {
		return
	}
	m.unsaved = failing
	m.options.Metrics.Unsaved(cluster, failing)
	if !failing {
		m.options.Logger.Info("the last known good state is saved again", "cluster", cluster)
		m.operator.problem("unsaved", nil)
		return
	}
	m.options.Logger.Warn("the last known good state was not saved", "cluster", cluster, "err", err, "retryIn", recordfile.SaveAgain)
	m.operator.problem("unsaved", &federation.Problem{Code: "STATE_NOT_SAVED", Object: "cluster " + string(cluster), Message: fmt.Sprintf(
		"its last known good state cannot be saved in %s: %s; make the folder writable and free space on its disk: the hub tries again every %s. "+
			"The cluster is served; after a restart the hub knows an older state of it until it answers", m.options.Dir, err, recordfile.SaveAgain)})
}

// saver keeps the last known good state of one cluster on disk.
type saver struct {
	shard     federation.ShardKey
	files     *savedStates
	snapshots *federation.Aggregate
	now       func() time.Time
	dirty     wake.Signal // tells the supervisor that there is something to save
	gone      atomic.Bool // detached: it is not saved any more

	mu      sync.Mutex // taken last
	unsaved unsaved
	owner   string // see Cluster.Owner
	written bool   // by this process, so that the file can be changed in place
}

// save writes what is not on disk yet. What changes meanwhile goes to the same file
// later. After a failure the whole file is rewritten.
func (s *saver) save() error {
	what, owner := s.take()
	if what.empty() {
		return nil
	}
	err := s.write(&what, owner)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.written, s.unsaved.whole = false, true
	}
	return err
}

// take returns what is to be written now.
func (s *saver) take() (what unsaved, owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	what, s.unsaved = s.unsaved, unsaved{}
	s.written = s.written || what.whole
	return what, s.owner
}

// mark notes what is to be written. The first write of a process is a new file,
// whatever the old one holds.
func (s *saver) mark(note func(*unsaved)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unsaved.whole = s.unsaved.whole || !s.written // first: what is written as a whole needs no notes
	note(&s.unsaved)
	s.dirty.Notify()
}

// own notes whose the cluster is, on disk too if there is something to be kept.
func (s *saver) own(owner string, keep bool) {
	s.mu.Lock()
	same := s.owner == owner
	s.owner = owner
	s.mu.Unlock()
	if !same && keep {
		s.mark(func(u *unsaved) { u.header = true })
	}
}

func (s *saver) write(what *unsaved, owner string) error {
	snapshot := s.snapshots.Latest()
	records, err := what.records(snapshot, s.shard)
	if err != nil {
		return err
	}
	h := savedHeader{Cluster: s.shard.Cluster, Provider: s.shard.Provider, Owner: owner}
	if c, ok := snapshot.Cluster(s.shard.Cluster); ok {
		h.UID, h.Network = c.Identity.UID, c.Identity.Network
	}
	return s.files.locked(s.shard, func(path string) error {
		if s.gone.Load() {
			return nil
		}
		h.Saved = s.now().UTC().Truncate(time.Second)
		// By the changed records alone if the process wrote the file before, else as a new file in its place.
		return savedFile(path).Write(what.whole, &h, records)
	})
}
