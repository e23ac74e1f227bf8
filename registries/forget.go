package registries

import (
	"errors"
	"io/fs"
	"net/url"
	"os"
	"strings"

	"isthmus.dev/isthmus/federation"
)

// forget removes the files of an owner whose shards do not stay. What is not a file
// of ours is left alone.
func (d *savedStates) forget(owner string, stays func(federation.ShardKey) bool) error {
	if d.dir == "" || owner == "" {
		return nil
	}
	files, err := os.ReadDir(d.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var wrong error
	for _, f := range files {
		shard, ours := shardOfFile(f.Name())
		if !ours || !f.Type().IsRegular() {
			continue
		}
		wrong = errors.Join(wrong, d.locked(shard, func(path string) error {
			if ownerIn(path) != owner || stays(shard) { // a cluster is attached before it uses its file
				return nil
			}
			return removeFile(path)
		}))
	}
	return wrong
}

// Saved is a cluster whose last known good state is on disk.
type Saved struct {
	Shard federation.ShardKey
	Owner string // see Cluster.Owner
}

// Saved are the clusters of which a state is on disk, attached or not.
func (s *Supervisor) Saved() ([]Saved, error) {
	return s.saved.all()
}

func (d *savedStates) all() (all []Saved, err error) {
	if d.dir == "" {
		return nil, nil
	}
	files, err := os.ReadDir(d.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, f := range files {
		if shard, ours := shardOfFile(f.Name()); ours && f.Type().IsRegular() {
			all = append(all, Saved{Shard: shard, Owner: d.ownerOf(shard)})
		}
	}
	return all, nil
}

// shardOfFile is the reverse of savedStates.path.
func shardOfFile(name string) (federation.ShardKey, bool) {
	rest, ours := strings.CutSuffix(name, savedSuffix)
	at := strings.LastIndexByte(rest, '.')
	if !ours || at < 0 {
		return federation.ShardKey{}, false
	}
	id, err := url.PathUnescape(rest[:at])
	provider, err2 := url.PathUnescape(rest[at+1:])
	return federation.ShardKey{Cluster: federation.ClusterID(id), Provider: federation.Provider(provider)}, err == nil && err2 == nil
}
