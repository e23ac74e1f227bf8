package federation

import (
	"iter"
	"net/netip"
	"slices"
	"strings"

	"isthmus.dev/isthmus/internal/btree"
)

// networkIndex holds the networks and what they are made of.
type networkIndex struct {
	byID     btree.Map[*Network]
	claims   btree.Map[claim]        // network, service, shard: services whose labels make them gateways
	uses     btree.Map[gatewayUse]   // kind, thing, network: what networks looked at for their gateways
	origins  btree.Map[origin]       // network
	resolved btree.Map[[]netip.Addr] // name
	verdicts btree.Map[Verdict]      // gateway, observer
	placement
}

// origin is what a network was made of, known or not.
type origin struct {
	uses    map[string]gatewayUse // by key
	refused []RefusedGateway
}

// claim is a service whose labels make it the entry of a network.
type claim struct {
	service ServiceKey
	shard   ShardKey
}

// gatewayUse means that the network must be recomputed when the thing changes.
type gatewayUse struct {
	of      string
	network NetworkID
}

type useKind string

const (
	useOfName    useKind = "n" // a name that is resolved
	useOfService useKind = "s" // services of a hostname
	useOfAddress useKind = "a" // an address that may be the VIP of a service
	useOfGateway useKind = "g" // a gateway that may be probed
)

func (k useKind) prefix(of string) string { return string(k) + of + nul }

func (x networkIndex) known(id NetworkID) (*Network, bool) {
	n, ok := x.byID.Get(string(id))
	if !ok && id == DefaultNetwork {
		return &Network{ID: id}, true
	}
	return n, ok
}

// networksTxn is a networkIndex in the making.
type networksTxn struct {
	byID     btree.Txn[*Network]
	claims   btree.Txn[claim]
	uses     btree.Txn[gatewayUse]
	origins  btree.Txn[origin]
	resolved btree.Txn[[]netip.Addr]
	verdicts btree.Txn[Verdict]
	placement
	dirty   map[NetworkID]bool // to be recomputed
	all     bool               // every network is dirty
	zonesAt bool               // a Network object changed, and with it the placement
	changes *changes
}

func (x networkIndex) txn() networksTxn {
	return networksTxn{
		byID: x.byID.Txn(), claims: x.claims.Txn(), uses: x.uses.Txn(), origins: x.origins.Txn(), resolved: x.resolved.Txn(),
		verdicts:  x.verdicts.Txn(),
		placement: x.placement,
		dirty:     map[NetworkID]bool{},
	}
}

func (x *networksTxn) commit() networkIndex {
	return networkIndex{
		byID: x.byID.Commit(), claims: x.claims.Commit(), uses: x.uses.Commit(), origins: x.origins.Commit(), resolved: x.resolved.Commit(),
		verdicts:  x.verdicts.Commit(),
		placement: x.placement,
	}
}

// used marks the networks that looked at the thing.
func (x *networksTxn) used(kind useKind, of string) {
	x.uses.WalkPrefix(kind.prefix(of), func(_ string, use gatewayUse) bool {
		x.dirty[use.network] = true
		return false
	})
}

// claimed marks the networks whose entry the services of the cluster claim to be:
// whether a claim counts depends on the cluster's own network.
func (x *networksTxn) claimed(by ClusterID) {
	x.claims.Walk(func(k string, c claim) bool {
		if id, _, _ := strings.Cut(k, nul); c.shard.Cluster == by {
			x.dirty[NetworkID(id)] = true
		}
		return false
	})
}

// noteObject notes that an object changed which may decide about
// networks.
func (x *networksTxn) noteObject(key ObjectKey) {
	switch {
	case key.Of() == NetworkKind:
		x.dirty[NetworkID(key.Name)] = true
		x.zonesAt = true
	case key == MeshSettingsKey:
		x.all = true
	}
}

// noteService notes that the service changed.
func (x *networksTxn) noteService(key ServiceKey, old, now *Service) {
	x.used(useOfService, string(key.Hostname))
	before, after := old.SingleVIPs(), now.SingleVIPs()
	for _, list := range [...][]netip.Addr{before, after} {
		for _, vip := range list {
			x.used(useOfAddress, vip.String())
		}
	}
	for _, svc := range [...]*Service{old, now} {
		if svc == nil {
			continue
		}
		for _, shard := range svc.Shards.All() {
			if id := shard.claims(); id != "" {
				x.dirty[id] = true
			}
		}
	}
}

// noteClaim moves the index of gateways by label from the old shard to the new.
func (x *networksTxn) noteClaim(source ShardKey, key ServiceKey, old, now *Shard) {
	at := func(id NetworkID) string {
		return string(id) + nul + key.sortKey() + nul + source.prefix()
	}
	before, after := old.claims(), now.claims()
	if before != after && before != "" {
		x.claims.Delete(at(before))
		x.dirty[before] = true
	}
	if after != "" {
		x.claims.Set(at(after), claim{service: key, shard: source})
		x.dirty[after] = true
	}
}

// applyResolved applies to which addresses names of gateways resolve.
func (x *networksTxn) applyResolved(delta Delta[Hostname, []netip.Addr]) {
	for _, name := range delta.removed(x.resolvedNames()) {
		if _, had := x.resolved.Delete(string(name)); had {
			x.used(useOfName, string(name))
			x.changes.any = true
		}
	}
	for name, to := range delta.Set {
		to = normalAddresses(to)
		if was, had := x.resolved.Get(string(name)); had && slices.Equal(was, to) {
			continue
		}
		x.resolved.Set(string(name), to)
		x.used(useOfName, string(name))
		x.changes.any = true
	}
}

func (x *networksTxn) resolvedNames() iter.Seq[Hostname] {
	return func(yield func(Hostname) bool) {
		x.resolved.Walk(func(k string, _ []netip.Addr) bool { return !yield(Hostname(k)) })
	}
}
