package registries

import (
	"encoding/json"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/recordfile"
)

// unsaved is what of a cluster's state is not on disk yet.
type unsaved struct {
	header    bool
	whole     bool // everything: the file cannot be changed in place
	services  map[federation.ServiceKey]bool
	workloads map[federation.WorkloadKey]bool
}

func (u *unsaved) empty() bool {
	return !u.header && !u.whole && len(u.services) == 0 && len(u.workloads) == 0
}

// note adds what an edit changed. The snapshots before and after it tell what a
// full one replaced: the entries that are not the same values any more.
func (u *unsaved) note(e federation.Edit, shard federation.ShardKey, before, after *federation.Snapshot) {
	u.header = u.header || e.Identity != nil
	if u.whole {
		return
	}
	if u.services == nil {
		u.services, u.workloads = map[federation.ServiceKey]bool{}, map[federation.WorkloadKey]bool{}
	}
	if e.Services.Full || e.Workloads.Full {
		old, now := before.Contribution(shard), after.Contribution(shard)
		differ(u.services, old.Services.Set, now.Services.Set)
		differ(u.workloads, old.Workloads.Set, now.Workloads.Set)
		return
	}
	spoken(u.services, e.Services)
	spoken(u.workloads, e.Workloads)
}

func differ[K, V comparable](found map[K]bool, old, now map[K]V) {
	for k, v := range now {
		if old[k] != v {
			found[k] = true
		}
	}
	for k := range old {
		if _, still := now[k]; !still {
			found[k] = true
		}
	}
}

func spoken[K comparable, V any](found map[K]bool, d federation.Delta[K, V]) {
	for k := range d.Set {
		found[k] = true
	}
	for _, k := range d.Gone {
		found[k] = true
	}
}

// records are the values of all that is not on disk, as the snapshot has them.
func (u *unsaved) records(s *federation.Snapshot, shard federation.ShardKey) (records []recordfile.Record, err error) {
	if u.whole {
		content := s.Contribution(shard)
		u.services, u.workloads = keys(content.Services.Set), keys(content.Workloads.Set)
	}
	add := func(bucket string, key []byte, v any) error {
		r := recordfile.Record{Bucket: bucket, Key: key}
		if v != nil {
			r.Value, err = json.Marshal(v)
			if err != nil {
				return err
			}
		}
		records = append(records, r)
		return nil
	}
	for k := range u.services {
		var v any
		if svc, ok := s.Service(k); ok {
			if said := svc.Shards.Of(shard); said != nil && said.NameOf == "" {
				v = said
			}
		}
		if err := add(serviceBucket, serviceKey(k), v); err != nil {
			return nil, err
		}
	}
	for k := range u.workloads {
		var v any
		if w, ok := s.Workload(shard, k); ok {
			v = w
		}
		if err := add(workloadBucket, workloadKey(k), v); err != nil {
			return nil, err
		}
	}
	return records, nil
}

func keys[K comparable, V any](m map[K]V) map[K]bool {
	found := make(map[K]bool, len(m))
	for k := range m {
		found[k] = true
	}
	return found
}
