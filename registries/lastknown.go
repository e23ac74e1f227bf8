package registries

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"isthmus.dev/isthmus/federation"
)

// savedFormat is the version of the files; a higher one is refused. A file is a
// line of savedHeader and the JSON of saved.
const savedFormat = 1

// maxSaved is the largest file that is read, in bytes.
const maxSaved = 1 << 30

type savedHeader struct {
	Format int    `json:"lastKnownGood"`
	SHA256 string `json:"sha256"` // of what follows the line
	Owner  string `json:"owner,omitempty"`
}

// saved is the last known good state of one cluster.
type saved struct {
	Cluster   federation.ClusterID `json:"cluster"`
	Provider  federation.Provider  `json:"provider"`
	UID       string               `json:"uid,omitempty"`
	Network   federation.NetworkID `json:"network,omitempty"`
	Saved     time.Time            `json:"saved"`
	Services  []savedService       `json:"services"`
	Workloads []savedWorkload      `json:"workloads"`
	owner     string               // in the header
}

type savedService struct {
	Hostname  federation.Hostname `json:"hostname"`
	Namespace string              `json:"namespace,omitempty"`
	Shard     *federation.Shard   `json:"shard"`
}

type savedWorkload struct {
	Key      federation.WorkloadKey `json:"key"`
	Workload *federation.Workload   `json:"workload"`
}

// stateOf is what the snapshot holds of the shard.
func stateOf(s *federation.Snapshot, shard federation.ShardKey, now time.Time) saved {
	state := saved{Cluster: shard.Cluster, Provider: shard.Provider, Saved: now.UTC().Truncate(time.Second)}
	if c, ok := s.Cluster(shard.Cluster); ok {
		state.UID, state.Network = c.Identity.UID, c.Identity.Network
	}
	content := s.Contribution(shard)
	for key, shard := range content.Services.Set {
		state.Services = append(state.Services, savedService{Hostname: key.Hostname, Namespace: key.Namespace, Shard: shard})
	}
	for key, w := range content.Workloads.Set {
		state.Workloads = append(state.Workloads, savedWorkload{Key: key, Workload: w})
	}
	slices.SortFunc(state.Services, func(a, b savedService) int {
		return cmp.Or(cmp.Compare(a.Hostname, b.Hostname), cmp.Compare(a.Namespace, b.Namespace))
	})
	slices.SortFunc(state.Workloads, func(a, b savedWorkload) int {
		return cmp.Or(cmp.Compare(a.Key.Namespace, b.Key.Namespace), cmp.Compare(a.Key.Name, b.Key.Name))
	})
	return state
}

// edit is the state as the full edit that restores it.
func (s *saved) edit() federation.Edit {
	identity := s.identity()
	e := federation.Edit{
		Services:  federation.Delta[federation.ServiceKey, *federation.Shard]{Full: true, Set: map[federation.ServiceKey]*federation.Shard{}},
		Workloads: federation.Delta[federation.WorkloadKey, *federation.Workload]{Full: true, Set: map[federation.WorkloadKey]*federation.Workload{}},
		Identity:  &identity,
	}
	for _, svc := range s.Services {
		e.Services.Set[federation.ServiceKey{Hostname: svc.Hostname, Namespace: svc.Namespace}] = svc.Shard
	}
	for _, w := range s.Workloads {
		e.Workloads.Set[w.Key] = w.Workload
	}
	return e
}

func (s *saved) identity() federation.Identity {
	return federation.Identity{UID: s.UID, Network: s.Network}
}

func (s *saved) encode() ([]byte, error) {
	body, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(body)
	header, err := json.Marshal(savedHeader{Format: savedFormat, SHA256: hex.EncodeToString(sum[:]), Owner: s.owner})
	if err != nil {
		return nil, err
	}
	return append(append(header, '\n'), body...), nil
}

// decodeSaved refuses whatever encode did not write for this very shard.
func decodeSaved(data []byte, shard federation.ShardKey) (*saved, error) {
	line, body, _ := bytes.Cut(data, []byte("\n"))
	var header savedHeader
	if err := json.Unmarshal(line, &header); err != nil || header.Format < 1 {
		return nil, errors.New("it is no last known good state")
	}
	if header.Format > savedFormat {
		return nil, fmt.Errorf("its format %d is newer than %d, which this version knows", header.Format, savedFormat)
	}
	if sum := sha256.Sum256(body); hex.EncodeToString(sum[:]) != header.SHA256 {
		return nil, errors.New("its checksum does not fit: it is damaged")
	}
	var s saved
	if err := json.Unmarshal(body, &s); err != nil {
		return nil, fmt.Errorf("reading its content: %w", err)
	}
	if s.Cluster != shard.Cluster || s.Provider != shard.Provider {
		return nil, fmt.Errorf("it is that of %s/%s", s.Cluster, s.Provider)
	}
	incomplete := slices.ContainsFunc(s.Services, func(v savedService) bool { return v.Shard == nil }) ||
		slices.ContainsFunc(s.Workloads, func(v savedWorkload) bool { return v.Workload == nil })
	if incomplete {
		return nil, errors.New("an entry of it is empty")
	}
	return &s, nil
}

// savedStates are the files of one folder, one a cluster.
type savedStates struct {
	dir string // empty: nothing is kept
	mu  sync.Mutex
}

func (d *savedStates) path(shard federation.ShardKey) string {
	return filepath.Join(d.dir, url.PathEscape(string(shard.Cluster))+"."+url.PathEscape(string(shard.Provider))+".json")
}

// load returns nil where nothing was saved.
func (d *savedStates) load(shard federation.ShardKey) (*saved, error) {
	if d.dir == "" {
		return nil, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	info, err := os.Lstat(d.path(shard))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxSaved) {
		err = errors.New("it is no regular file of at most 1 GiB")
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(d.path(shard))
	}
	var s *saved
	if err == nil {
		s, err = decodeSaved(data, shard)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", d.path(shard), err)
	}
	return s, nil
}

// remove deletes the file, if there is one.
func (d *savedStates) remove(shard federation.ShardKey) error {
	if d.dir == "" {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := os.Remove(d.path(shard)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
