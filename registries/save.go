package registries

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"
)

// saveDelay is how long changes are collected before they are written; a change
// is on disk within 1 s.
const saveDelay = 300 * time.Millisecond

// save writes what changed until the context ends.
func (s *Supervisor) save(ctx context.Context) {
	timer := time.NewTimer(saveDelay)
	timer.Stop()
	defer timer.Stop()
	for {
		select {
		case <-s.dirty:
			timer.Reset(saveDelay)
		case <-ctx.Done():
			return
		}
		select {
		case <-timer.C:
			s.saveDirty()
		case <-ctx.Done():
			return
		}
	}
}

// saveDirty writes the state of every cluster that changed.
func (s *Supervisor) saveDirty() {
	if s.options.Dir == "" {
		return
	}
	s.mu.Lock()
	var changed []*member
	for _, m := range s.members {
		if m.touched.Swap(false) {
			changed = append(changed, m)
		}
	}
	s.mu.Unlock()
	for _, m := range changed {
		if err := m.saveState(); err != nil {
			m.touched.Store(true) // the next change, or the end, tries again
			s.options.Logger.Warn("the last known good state was not saved", "cluster", m.shard.Cluster, "err", err)
		}
	}
}

func (m *member) saveState() error {
	state := stateOf(m.options.Aggregate.Latest(), m.shard, m.options.Now())
	m.mu.Lock()
	state.owner = m.owner
	m.mu.Unlock()
	data, err := state.encode()
	if err != nil {
		return err
	}
	m.saved.mu.Lock()
	defer m.saved.mu.Unlock()
	if m.gone.Load() {
		return nil
	}
	return replaceFile(m.saved.path(m.shard), data)
}

// replaceFile makes the file hold the data: after a crash it has the old content
// or the new one. Only its owner may read it.
func replaceFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncFolder(filepath.Dir(path))
}

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
