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
	"sync/atomic"

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
	dir   string   // empty: nothing is kept
	files sync.Map // *stateFile by ShardKey
}

// stateFile has a lock of its own, so that a slow file does not hold up the others. The
// next user of a file first removes it, if a caller that does not wait ordered that.
type stateFile struct {
	mu     sync.Mutex
	doomed atomic.Bool // it is removed before it is used again
}

func (d *savedStates) file(shard federation.ShardKey) *stateFile {
	f, _ := d.files.LoadOrStore(shard, &stateFile{})
	return f.(*stateFile)
}

// locked calls the function while it has the file of the shard to itself.
func (d *savedStates) locked(shard federation.ShardKey, what func(path string) error) error {
	f := d.file(shard)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.doomed.Load() {
		if err := removeFile(d.path(shard)); err != nil {
			return err
		}
		f.doomed.Store(false)
	}
	return what(d.path(shard))
}

func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// savedSuffix ends the name of every file.
const savedSuffix = ".db"

func (d *savedStates) path(shard federation.ShardKey) string {
	return filepath.Join(d.dir, url.PathEscape(string(shard.Cluster))+"."+url.PathEscape(string(shard.Provider))+savedSuffix)
}

// load returns nil where nothing was saved.
func (d *savedStates) load(shard federation.ShardKey) (state *saved, err error) {
	if d.dir == "" {
		return nil, nil
	}
	err = d.locked(shard, func(path string) error {
		state, err = readSaved(path, shard)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("reading %s: %w", path, err)
		}
		return nil
	})
	return state, err
}

// doom has the file of the shard, if there is one, removed before it is used again. It does not wait
// for those that use it, as sweep does.
func (d *savedStates) doom(shard federation.ShardKey) { d.file(shard).doomed.Store(true) }

// sweepAll removes all files of which that was ordered.
func (d *savedStates) sweepAll() (wrong error) {
	for shard, f := range d.files.Range {
		if f.(*stateFile).doomed.Load() {
			wrong = errors.Join(wrong, d.sweep(shard.(federation.ShardKey)))
		}
	}
	return wrong
}

// sweep removes the file if that was ordered.
func (d *savedStates) sweep(shard federation.ShardKey) error {
	if d.dir == "" {
		return nil
	}
	return d.locked(shard, func(string) error { return nil })
}
