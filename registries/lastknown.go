package registries

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"isthmus.dev/isthmus/federation"
)

// saved is the last known good state of one cluster.
type saved struct {
	savedHeader
	services  map[federation.ServiceKey]*federation.Shard
	workloads map[federation.WorkloadKey]*federation.Workload
}

// edit is the state as the full edit that restores it.
func (s *saved) edit() federation.Edit {
	identity := s.identity()
	return federation.Edit{
		Services:  federation.Delta[federation.ServiceKey, *federation.Shard]{Full: true, Set: s.services},
		Workloads: federation.Delta[federation.WorkloadKey, *federation.Workload]{Full: true, Set: s.workloads},
		Identity:  &identity,
	}
}

func (s *saved) identity() federation.ClusterIdentity {
	return federation.ClusterIdentity{UID: s.UID, Network: s.Network}
}

// lastKnown is what was known of a cluster before it answered. It is guarded by member.mu.
type lastKnown struct {
	shard     federation.ShardKey
	snapshots *federation.Aggregate
	restored  *saved // last known good state; nil once the cluster answered
	served    bool   // it is published
}

func (l *lastKnown) drop() { l.restored, l.served = nil, false }

// shown is the state that is published; nil: none is.
func (l *lastKnown) shown() *saved {
	if l.served {
		return l.restored
	}
	return nil
}

// baseline is what a full edit is compared with: what is published of the cluster, else
// its last known good state.
func (l *lastKnown) baseline(synced bool) federation.Edit {
	if !synced && !l.served && l.restored != nil {
		return l.restored.edit()
	}
	return l.snapshots.Latest().Contribution(l.shard)
}

// identity is that of the cluster as it was last known.
func (l *lastKnown) identity() federation.ClusterIdentity {
	if c, ok := l.snapshots.Latest().Cluster(l.shard.Cluster); ok && c.Identity.UID != "" {
		return c.Identity
	}
	if l.restored != nil {
		return l.restored.identity()
	}
	return federation.ClusterIdentity{}
}

// add decodes one record of the file.
func (s *saved) add(bucket string, key, value []byte) error {
	if bucket == serviceBucket {
		k, err := serviceOf(key)
		if err != nil {
			return err
		}
		s.services[k], err = decode[federation.Shard](key, value)
		return err
	}
	k, err := workloadOf(key)
	if err != nil {
		return err
	}
	s.workloads[k], err = decode[federation.Workload](key, value)
	return err
}

func decode[T any](key, value []byte) (*T, error) {
	var v *T
	if err := json.Unmarshal(value, &v); err != nil {
		return nil, fmt.Errorf("reading %q: %w", key, err)
	}
	if v == nil {
		return nil, fmt.Errorf("%q is empty", key)
	}
	return v, nil
}

// The keys of records: NUL is part of no name.
func serviceKey(k federation.ServiceKey) []byte {
	return []byte(k.Namespace + "\x00" + string(k.Hostname))
}

func workloadKey(k federation.WorkloadKey) []byte {
	return []byte(k.Namespace + "\x00" + k.Name)
}

func serviceOf(key []byte) (federation.ServiceKey, error) {
	namespace, host, ok := strings.Cut(string(key), "\x00")
	if !ok {
		return federation.ServiceKey{}, fmt.Errorf("%q is not the key of a service", key)
	}
	return federation.ServiceKey{Hostname: federation.Hostname(host), Namespace: namespace}, nil
}

func workloadOf(key []byte) (federation.WorkloadKey, error) {
	namespace, name, ok := strings.Cut(string(key), "\x00")
	if !ok {
		return federation.WorkloadKey{}, fmt.Errorf("%q is not the key of a workload", key)
	}
	return federation.WorkloadKey{Namespace: namespace, Name: name}, nil
}

// savedStates are the files of one folder, one per cluster.
type savedStates struct {
	dir string // empty: nothing is kept
	// files has a lock for each file, so that a slow one does not hold up the others.
	files sync.Map
}

// lock has the file of the shard to itself until unlock is called.
func (d *savedStates) lock(shard federation.ShardKey) (unlock func()) {
	mu, _ := d.files.LoadOrStore(shard, &sync.Mutex{})
	mu.(*sync.Mutex).Lock()
	return mu.(*sync.Mutex).Unlock
}

// savedSuffix ends the name of every file.
const savedSuffix = ".db"

func (d *savedStates) path(shard federation.ShardKey) string {
	return filepath.Join(d.dir, url.PathEscape(string(shard.Cluster))+"."+url.PathEscape(string(shard.Provider))+savedSuffix)
}

// load returns nil where nothing was saved.
func (d *savedStates) load(shard federation.ShardKey) (*saved, error) {
	if d.dir == "" {
		return nil, nil
	}
	defer d.lock(shard)()
	s, err := readSaved(d.path(shard), shard)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", d.path(shard), err)
	}
	return s, nil
}

// write brings the file of the shard to the state: by the changed records alone
// if the process wrote the file before, else as a new file in its place.
func (d *savedStates) write(shard federation.ShardKey, c savedChange, now time.Time) error {
	c.header.Saved = now.UTC().Truncate(time.Second)
	return savedFile(d.path(shard)).Write(c.whole, &c.header, c.records)
}

// remove deletes the file, if there is one.
func (d *savedStates) remove(shard federation.ShardKey) error {
	if d.dir == "" {
		return nil
	}
	defer d.lock(shard)()
	if err := os.Remove(d.path(shard)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
