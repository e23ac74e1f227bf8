package mcp

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/objectfile"
	"isthmus.dev/isthmus/internal/recordfile"
	"isthmus.dev/isthmus/internal/wake"
)

// keptHeader describes the file of a server.
type keptHeader struct {
	recordfile.Stamp
	Address string    `json:"address"` // of the server that gave the objects
	Saved   time.Time `json:"saved"`
}

// suffix is how the names of files end.
const suffix = ".db"

// keeper keeps on disk what is given of a server, for a hub that starts while it is away.
type keeper struct {
	file    recordfile.File // without a path: nothing is kept
	address string
	logger  *slog.Logger
	wake    wake.Signal

	mu      sync.Mutex
	whole   bool                                    // the file is to be replaced
	changed map[federation.ObjectKey]*config.Object // since the last write; nil: gone
}

func newKeeper(o Options) *keeper {
	k := &keeper{address: o.Address, logger: o.Logger, wake: wake.New(), changed: map[federation.ObjectKey]*config.Object{}}
	if o.Dir != "" {
		k.file = objectfile.At(filepath.Join(o.Dir, o.Name+suffix), "configurationServer", "a file of a configuration server")
	}
	return k
}

// Forget removes the files in the folder that are of no server in the list: what they gave is
// not configuration any more.
func Forget(dir string, but []Server) error {
	names := map[string]bool{}
	for _, s := range but {
		names[s.Name+suffix] = true
	}
	all, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	for _, path := range all {
		if !names[filepath.Base(path)] {
			err = errors.Join(err, os.Remove(path))
		}
	}
	return err
}

// read returns what the file has and when that was written; nothing, if it is of another server.
func (k *keeper) read() (all []*config.Object, saved time.Time) {
	if k.file.Path == "" {
		return nil, saved
	}
	var header keptHeader
	right := func() error {
		if header.Address != k.address {
			return fmt.Errorf("it is of the server %s", header.Address)
		}
		return nil
	}
	err := k.file.Read(&header, right, func(_ string, key, value []byte) error {
		o, _, err := objectfile.Read(key, value)
		all = append(all, o)
		return err
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, saved
	case err != nil:
		k.logger.Warn("what a configuration server gave before the start is not used", slog.Any("err", err))
		return nil, saved
	}
	return all, header.Saved
}

// replace has the whole file written again.
func (k *keeper) replace(given map[federation.ObjectKey]*config.Object) {
	k.mu.Lock()
	k.whole, k.changed = true, maps.Clone(given)
	k.mu.Unlock()
	k.wake.Notify()
}

// enqueue schedules what changed to be written.
func (k *keeper) enqueue(events []config.Event) {
	k.mu.Lock()
	for _, e := range events {
		k.changed[e.Key()] = e.New
	}
	k.mu.Unlock()
	k.wake.Notify()
}

// save writes what changed. What could not be written is written the next time.
func (k *keeper) save() error {
	k.mu.Lock()
	whole, changed := k.whole, k.changed
	k.whole, k.changed = false, map[federation.ObjectKey]*config.Object{}
	k.mu.Unlock()
	if k.file.Path == "" || !whole && len(changed) == 0 {
		return nil
	}
	err := k.write(whole, changed)
	if err == nil {
		return nil
	}
	k.mu.Lock()
	if !k.whole {
		k.whole = whole
		maps.Copy(changed, k.changed)
		k.changed = changed
	}
	k.mu.Unlock()
	return err
}

func (k *keeper) write(whole bool, changed map[federation.ObjectKey]*config.Object) error {
	records := make([]recordfile.Record, 0, len(changed))
	for key, o := range changed {
		r := objectfile.Deleted(key)
		if o != nil {
			var err error
			r, err = objectfile.Record(key, objectfile.Object{APIVersion: o.APIVersion, Manifest: o.Manifest})
			if err != nil {
				return err
			}
		}
		records = append(records, r)
	}
	return k.file.Write(whole, &keptHeader{Address: k.address, Saved: time.Now().UTC().Truncate(time.Second)}, records)
}

func (k *keeper) failed(err error) {
	k.logger.Warn("what a configuration server gave is not on disk; a hub that starts while the server is away lacks it", slog.Any("err", err))
}

// restore restores what the last run gave of the kinds that are asked for. Each object is read
// again once the server answers: the hub that wrote the file may have been an older one.
func (s *Source) restore() {
	all, saved := s.keeper.read()
	for _, o := range all {
		t := s.tables[o.APIVersion+"/"+o.Key.Kind]
		if t != nil {
			s.set(t, o.Key.Namespace+"/"+o.Key.Name, &item{object: o})
		}
	}
	if saved.IsZero() {
		return
	}
	s.restored = saved
	s.o.Logger.Info("the objects of a configuration server are those of the last run", slog.Int("objects", len(all)),
		slog.Time("saved", saved))
}

// answered reports whether the server answered for every kind.
func answered(all []*table) bool {
	return !slices.ContainsFunc(all, func(t *table) bool { return !t.answered })
}

// keep has on disk what is given once all of it was read: a part of a configuration may mean
// something else than all of it.
func (s *Source) keep(events []config.Event) {
	switch {
	case s.kept:
		s.keeper.enqueue(events)
	case answered(s.asked):
		s.kept, s.restored = true, time.Time{}
		s.keeper.replace(s.given.Objects)
	}
}
