package federation

import (
	"iter"
	"slices"
	"strings"

	"isthmus.dev/isthmus/internal/btree"
)

// addressOwner is what an address within a network belongs to: an endpoint of one
// service in one shard, or a workload.
type addressOwner struct {
	shard    ShardKey
	service  ServiceKey
	workload WorkloadKey
	isPod    bool // workload is set, not service
}

// The first letter of an owner's key.
const (
	ownerWorkload = "w"
	ownerEndpoint = "e"
)

func addressOwnersPrefix(at AddressKey) string { return at.sortKey() + nul }

func addressOwnerKey(at AddressKey, r addressOwner) string {
	if r.isPod {
		return addressOwnersPrefix(at) + ownerWorkload + r.shard.prefix() + workloadName(r.workload)
	}
	return addressOwnersPrefix(at) + ownerEndpoint + r.shard.prefix() + r.service.sortKey()
}

// addressOwnerOf reads what follows the prefix of the address.
func addressOwnerOf(key string) addressOwner {
	letter, rest := key[:1], key[1:]
	shard := shardKeyOf(rest)
	if letter == ownerWorkload {
		return addressOwner{shard: shard, workload: workloadKeyOf(rest, shard), isPod: true}
	}
	return addressOwner{shard: shard, service: serviceKeyOf(rest[len(shard.prefix()):])}
}

func workloadName(k WorkloadKey) string { return k.Namespace + nul + k.Name }

func workloadSortKey(shard ShardKey, k WorkloadKey) string {
	return shard.prefix() + workloadName(k)
}

func workloadKeyOf(k string, shard ShardKey) WorkloadKey {
	ns, name, _ := strings.Cut(k[len(shard.prefix()):], nul)
	return WorkloadKey{Namespace: ns, Name: name}
}

// ownersAt yields what has the address: endpoints or workloads, as the letter says.
func ownersAt(s *Snapshot, at AddressKey, letter string) iter.Seq[addressOwner] {
	return func(yield func(addressOwner) bool) {
		prefix := addressOwnersPrefix(at)
		s.addresses.WalkPrefix(prefix+letter, func(k string, _ struct{}) bool {
			return !yield(addressOwnerOf(k[len(prefix):]))
		})
	}
}

// addressesTxn are the owners of addresses in a draft.
type addressesTxn struct {
	btree.Txn[struct{}]
	touched map[AddressKey]bool // where owners came, went or changed
}

func (x *addressesTxn) touch(all ...AddressKey) {
	for _, at := range all {
		x.touched[at] = true
	}
}

// moveEndpoints moves one shard's endpoints of a service from old to now. Both are
// sorted, as NormalEndpoints leaves them.
func (x *addressesTxn) moveEndpoints(r addressOwner, old, now []Endpoint) {
	if len(old) == len(now) && (len(old) == 0 || &old[0] == &now[0]) {
		return
	}
	before, after := endpointsByAddress(old), endpointsByAddress(now)
	for at, was := range before {
		is, stays := after[at]
		if !stays {
			x.Delete(addressOwnerKey(at, r))
		}
		if !stays || !endpointsEqual(was, is) {
			x.touch(at)
		}
	}
	for at := range after {
		if _, was := before[at]; !was {
			x.Set(addressOwnerKey(at, r), struct{}{})
			x.touch(at)
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

// moveWorkload takes a workload from the addresses before to those after.
func (x *addressesTxn) moveWorkload(r addressOwner, before, after []AddressKey) {
	if slices.Equal(before, after) {
		return
	}
	for _, at := range before {
		if !slices.Contains(after, at) {
			x.Delete(addressOwnerKey(at, r))
		}
		x.touch(at)
	}
	for _, at := range after {
		x.Set(addressOwnerKey(at, r), struct{}{})
		x.touch(at)
	}
}
