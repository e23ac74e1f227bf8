package federation

import (
	"slices"
	"strings"

	"isthmus.dev/isthmus/internal/btree"
)

// resident is what an address within a network belongs to: an endpoint of one
// service in one shard, or a workload.
type resident struct {
	shard    ShardKey
	service  ServiceKey
	workload WorkloadKey
	isPod    bool // workload is set, not service
}

// The first letter of a resident's key.
const (
	residentWorkload = "w"
	residentEndpoint = "e"
)

func residentsPrefix(at AddressKey) string { return at.sortKey() + nul }

func residentKey(at AddressKey, r resident) string {
	if r.isPod {
		return residentsPrefix(at) + residentWorkload + r.shard.prefix() + workloadName(r.workload)
	}
	return residentsPrefix(at) + residentEndpoint + r.shard.prefix() + r.service.sortKey()
}

// residentOf reads what follows the prefix of the address.
func residentOf(key string) resident {
	letter, rest := key[:1], key[1:]
	shard := shardKeyOf(rest)
	if letter == residentWorkload {
		return resident{shard: shard, workload: workloadKeyOf(rest, shard), isPod: true}
	}
	return resident{shard: shard, service: serviceKeyOf(rest[len(shard.prefix()):])}
}

func workloadName(k WorkloadKey) string { return k.Namespace + nul + k.Name }

func workloadSortKey(shard ShardKey, k WorkloadKey) string {
	return shard.prefix() + workloadName(k)
}

func workloadKeyOf(k string, shard ShardKey) WorkloadKey {
	ns, name, _ := strings.Cut(k[len(shard.prefix()):], nul)
	return WorkloadKey{Namespace: ns, Name: name}
}

// residents yields what lives at the address.
func (s *Snapshot) residents(at AddressKey) []resident {
	var all []resident
	prefix := residentsPrefix(at)
	s.addresses.WalkPrefix(prefix, func(k string, _ struct{}) bool {
		all = append(all, residentOf(k[len(prefix):]))
		return false
	})
	return all
}

// residentsTxn keeps the index by address up to date and notes what it touches.
type residentsTxn struct {
	tree  *btree.Txn[struct{}]
	touch func(AddressKey)
}

// endpoints moves one shard's endpoints of a service from old to now. Both are
// sorted, as NormalEndpoints leaves them.
func (t residentsTxn) endpoints(r resident, old, now []Endpoint) {
	if len(old) == len(now) && (len(old) == 0 || &old[0] == &now[0]) {
		return
	}
	before, after := endpointsByAddress(old), endpointsByAddress(now)
	for at, was := range before {
		is, stays := after[at]
		if !stays {
			t.tree.Delete(residentKey(at, r))
		}
		if !stays || !endpointsEqual(was, is) {
			t.touch(at)
		}
	}
	for at := range after {
		if _, was := before[at]; !was {
			t.tree.Set(residentKey(at, r), struct{}{})
			t.touch(at)
		}
	}
}

func endpointsByAddress(list []Endpoint) map[AddressKey][]Endpoint {
	m := make(map[AddressKey][]Endpoint, len(list))
	for _, e := range list {
		if ip, ok := e.Address.IP(); ok {
			at := AddressKey{Network: e.Network, Addr: ip}
			m[at] = append(m[at], e)
		}
	}
	return m
}

// move takes a workload from the addresses before to those after.
func (t residentsTxn) move(r resident, before, after []AddressKey) {
	if slices.Equal(before, after) {
		return
	}
	for _, at := range before {
		if !slices.Contains(after, at) {
			t.tree.Delete(residentKey(at, r))
		}
		t.touch(at)
	}
	for _, at := range after {
		t.tree.Set(residentKey(at, r), struct{}{})
		t.touch(at)
	}
}

// touchAll notes the addresses of a workload that changed in other ways.
func (t residentsTxn) touchAll(at []AddressKey) {
	for _, key := range at {
		t.touch(key)
	}
}

// workloadAddresses is where the workload lives; w may be nil.
func (d *draft) workloadAddresses(shard ShardKey, w *Workload) []AddressKey {
	if w == nil {
		return nil
	}
	c, _ := d.clusters.Get(string(shard.Cluster))
	all := make([]AddressKey, len(w.Addresses))
	for i, a := range w.Addresses {
		all[i] = AddressKey{Network: d.networks.networkOf(c, w.Network, IPAddress(a)), Addr: a.Unmap()}
	}
	return all
}
