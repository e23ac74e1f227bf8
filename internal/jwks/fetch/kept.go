package fetch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/jwks"
	"isthmus.dev/isthmus/internal/recordfile"
	"isthmus.dev/isthmus/internal/wake"
)

// mostAge is how long ago the issuer must have given keys that a hub uses again after a start.
const mostAge = 24 * time.Hour

const keptBucket = "sets"

// kept has the last good keys on disk, for a hub that starts while an issuer is away (ADR 241).
type kept struct {
	file   recordfile.File // without a path: nothing is kept
	logger *slog.Logger
	wake   wake.Signal

	mu      sync.Mutex
	sets    map[federation.KeySource]keptSet // what the file should have
	whole   bool                             // all of the file is to be written
	changed map[federation.KeySource]bool    // what else is to be written
}

// keptSet is what the file has of a source.
type keptSet struct {
	Keys string    `json:"keys"`
	At   time.Time `json:"at"` // when the issuer gave them last
}

type keptHeader struct{ recordfile.Stamp }

func newKept(dir string, logger *slog.Logger) *kept {
	k := &kept{
		logger: logger, wake: wake.New(), sets: map[federation.KeySource]keptSet{}, changed: map[federation.KeySource]bool{},
	}
	if dir == "" {
		return k
	}
	k.file = recordfile.File{
		Path: filepath.Join(dir, "keys.db"), Header: "keys", Buckets: []string{keptBucket}, Format: 1, Title: "a file of keys of tokens",
	}
	k.read(time.Now())
	return k
}

// read reads what the last run kept. What is too old leaves the file.
func (k *kept) read(now time.Time) {
	found := map[federation.KeySource]keptSet{}
	err := k.file.Read(&keptHeader{}, func() error { return nil }, func(_ string, key, value []byte) error {
		var from federation.KeySource
		var set keptSet
		if err := errors.Join(json.Unmarshal(key, &from), json.Unmarshal(value, &set)); err != nil {
			return fmt.Errorf("reading a set of keys: %w", err)
		}
		found[from] = set
		return nil
	})
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			k.logger.Warn("keys of tokens on disk cannot be used; issuers that do not answer have none", slog.Any("err", err))
		}
		k.whole = true
		return
	}
	k.sets = found
	for from, set := range found {
		if !set.fresh(now) {
			delete(k.sets, from)
			k.changed[from] = true
		}
	}
}

// fresh: a clock that went back makes no set older than it is, and none that is from the future counts.
func (s keptSet) fresh(now time.Time) bool {
	age := now.Sub(s.At)
	return age >= 0 && age <= mostAge
}

// of are the keys that the last run had of a source; empty: none that may be used. They are read as those of an issuer are:
// another version of the hub may have written them.
func (k *kept) of(from federation.KeySource) string {
	k.mu.Lock()
	set, exists := k.sets[from]
	k.mu.Unlock()
	if !exists || !set.fresh(time.Now()) || secret(set.Keys) {
		return ""
	}
	keys, err := jwks.KeysUpTo(set.Keys, mostKeys)
	if err != nil {
		return ""
	}
	return keys
}

// put keeps what an issuer gave. Keys that are secrets stay in memory.
func (k *kept) put(from federation.KeySource, keys string) {
	if secret(keys) {
		k.drop(from)
		return
	}
	k.change(from, &keptSet{Keys: keys, At: time.Now().UTC()})
}

func (k *kept) drop(from federation.KeySource) { k.change(from, nil) }

func (k *kept) change(from federation.KeySource, set *keptSet) {
	if k.file.Path == "" {
		return
	}
	k.mu.Lock()
	delete(k.sets, from)
	if set != nil {
		k.sets[from] = *set
	}
	k.changed[from] = true
	k.mu.Unlock()
	k.wake.Notify()
}

// secret reports whether a set has keys that can also sign, or cannot be read.
func secret(keys string) bool {
	var set struct {
		Keys []struct {
			Type string `json:"kty"`
		} `json:"keys"`
	}
	if json.Unmarshal([]byte(keys), &set) != nil {
		return true
	}
	for _, key := range set.Keys {
		if key.Type == "oct" {
			return true
		}
	}
	return false
}

// save writes what changed. After a failure, all is written the next time: the file may be gone, or damaged.
func (k *kept) save() error {
	k.mu.Lock()
	whole := k.whole
	records, err := k.records()
	k.whole, k.changed = false, map[federation.KeySource]bool{}
	k.mu.Unlock()
	if k.file.Path == "" || !whole && len(records) == 0 {
		return nil
	}
	if err == nil {
		err = k.file.Write(whole, &keptHeader{}, records)
	}
	if err != nil {
		k.mu.Lock()
		k.whole = true
		k.mu.Unlock()
	}
	return err
}

// records are what is to be written. The caller holds the lock.
func (k *kept) records() (all []recordfile.Record, err error) {
	if k.whole {
		for from := range k.sets {
			k.changed[from] = true
		}
	}
	for from := range k.changed {
		r := recordfile.Record{Bucket: keptBucket}
		set, exists := k.sets[from]
		r.Key, err = json.Marshal(from)
		if err == nil && exists {
			r.Value, err = json.Marshal(set)
		}
		if err != nil {
			return nil, fmt.Errorf("writing a set of keys as JSON: %w", err)
		}
		all = append(all, r)
	}
	return all, nil
}

func (k *kept) failed(err error) {
	k.logger.Warn("keys of tokens are not on disk; a hub that starts while an issuer is away lacks them", slog.Any("err", err))
}
