package fetch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"path/filepath"
	"sync"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/recordfile"
)

// mostAge is how long ago the issuer must have given keys that a hub uses again after a start.
const mostAge = 24 * time.Hour

const keptBucket = "sets"

// kept has the last good keys on disk, for a hub that starts while an issuer is away (ADR 241).
type kept struct {
	file   recordfile.File // without a path: nothing is kept
	logger *slog.Logger
	wake   chan struct{}

	mu      sync.Mutex
	before  map[federation.KeySource]keptSet // of the last run
	whole   bool                             // all of the file is to be written
	changed map[federation.KeySource]*keptSet
}

// keptSet is what the file has of a source.
type keptSet struct {
	Keys string    `json:"keys"`
	At   time.Time `json:"at"` // when the issuer gave them last
}

type keptHeader struct{ recordfile.Stamp }

func newKept(dir string, logger *slog.Logger) *kept {
	k := &kept{
		logger: logger, wake: make(chan struct{}, 1), before: map[federation.KeySource]keptSet{},
		changed: map[federation.KeySource]*keptSet{},
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
	k.before = found
	for from, set := range found {
		if !set.fresh(now) {
			delete(k.before, from)
			k.changed[from] = nil
		}
	}
}

// fresh: a clock that went back makes no set older than it is, and none that is from the future counts.
func (s keptSet) fresh(now time.Time) bool {
	age := now.Sub(s.At)
	return age >= 0 && age <= mostAge
}

// of are the keys that the last run had of a source; empty: none that may be used.
func (k *kept) of(from federation.KeySource) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if set, exists := k.before[from]; exists && set.fresh(time.Now()) {
		return set.Keys
	}
	return ""
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
	delete(k.before, from)
	k.changed[from] = set
	k.mu.Unlock()
	select {
	case k.wake <- struct{}{}:
	default:
	}
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

// save writes what changed. What could not be written is written the next time.
func (k *kept) save() error {
	k.mu.Lock()
	whole, changed := k.whole, k.changed
	k.whole, k.changed = false, map[federation.KeySource]*keptSet{}
	k.mu.Unlock()
	if k.file.Path == "" || !whole && len(changed) == 0 {
		return nil
	}
	err := k.write(whole, changed)
	if err != nil {
		k.mu.Lock()
		k.whole = k.whole || whole
		maps.Copy(changed, k.changed)
		k.changed = changed
		k.mu.Unlock()
	}
	return err
}

func (k *kept) write(whole bool, changed map[federation.KeySource]*keptSet) error {
	var records []recordfile.Record
	for from, set := range changed {
		r := recordfile.Record{Bucket: keptBucket}
		var err error
		r.Key, err = json.Marshal(from)
		if err == nil && set != nil {
			r.Value, err = json.Marshal(set)
		}
		if err != nil {
			return fmt.Errorf("writing a set of keys as JSON: %w", err)
		}
		records = append(records, r)
	}
	return k.file.Write(whole, &keptHeader{}, records)
}

func (k *kept) failed(err error) {
	k.logger.Warn("keys of tokens are not on disk; a hub that starts while an issuer is away lacks them", slog.Any("err", err))
}
