package federation

import (
	"slices"
	"strings"

	iradix "github.com/hashicorp/go-immutable-radix/v2"
)

// resident is what an address within a network belongs to: an endpoint of one
// service in one shard, or a workload.
type resident struct {
	shard    ShardKey
	service  ServiceKey
	workload WorkloadKey
	isPod    bool // workload is set, not service
}

func residentBytes(at AddressKey, r resident) []byte {
	b := append(at.bytes(), nul...)
	if r.isPod {
		return append(append(append(b, 'w'), r.shard.prefix()...), workloadName(r.workload)...)
	}
	return append(append(append(b, 'e'), r.shard.prefix()...), r.service.bytes()...)
}

func workloadName(k WorkloadKey) string { return k.Namespace + nul + k.Name }

func workloadBytes(shard ShardKey, k WorkloadKey) []byte {
	return []byte(shard.prefix() + workloadName(k))
}

func workloadKeyOf(b []byte, shard ShardKey) WorkloadKey {
	ns, name, _ := strings.Cut(string(b[len(shard.prefix()):]), nul)
	return WorkloadKey{Namespace: ns, Name: name}
}

// residents yields what lives at the address.
func (s *Snapshot) residents(at AddressKey) []resident {
	var all []resident
	s.addresses.Root().WalkPrefix(append(at.bytes(), nul...), func(_ []byte, r resident) bool {
		all = append(all, r)
		return false
	})
	return all
}

// residentsTxn keeps the index by address up to date and notes what it touches.
type residentsTxn struct {
	tree  *iradix.Txn[resident]
	touch func(AddressKey)
}

// endpoints moves one shard's endpoints of a service from old to now. Both are
// sorted, as normalEndpoints leaves them.
func (t residentsTxn) endpoints(r resident, old, now []Endpoint) {
	if len(old) == len(now) && (len(old) == 0 || &old[0] == &now[0]) {
		return
	}
	before, after := endpointsByAddress(old), endpointsByAddress(now)
	for at, was := range before {
		is, stays := after[at]
		if !stays {
			t.tree.Delete(residentBytes(at, r))
		}
		if !stays || !endpointsEqual(was, is) {
			t.touch(at)
		}
	}
	for at := range after {
		if _, was := before[at]; !was {
			t.tree.Insert(residentBytes(at, r), r)
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
			t.tree.Delete(residentBytes(at, r))
		}
		t.touch(at)
	}
	for _, at := range after {
		t.tree.Insert(residentBytes(at, r), r)
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
	c, _ := d.clusters.Get([]byte(shard.Cluster))
	all := make([]AddressKey, len(w.Addresses))
	for i, a := range w.Addresses {
		all[i] = AddressKey{Network: d.networks.networkOf(c, w.Network, IPAddress(a)), Addr: a.Unmap()}
	}
	return all
}
