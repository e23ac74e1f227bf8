package federation

import (
	"iter"
	"net/netip"
	"slices"

	"isthmus.dev/isthmus/internal/btree"
	"isthmus.dev/isthmus/internal/noted"
)

// networkIndex holds the networks, and what is kept only because they are made from it.
type networkIndex struct {
	byID     btree.Map[*Network]
	notes    noted.Notes                 // what each network was made from
	refused  btree.Map[[]RefusedGateway] // network, known or not: gateways that are not used
	members  btree.Map[struct{}]         // network, cluster
	homes    btree.Map[NetworkID]        // cluster
	claims   btree.Map[claim]            // network, service, shard: services whose labels make them gateways
	resolved btree.Map[[]netip.Addr]     // name
	verdicts btree.Map[Verdict]          // gateway, observer
	placement
}

// claim is a service whose labels make it the entry of a network.
type claim struct {
	service ServiceKey
	shard   ShardKey
}

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
	notes    noted.Txn
	refused  btree.Txn[[]RefusedGateway]
	members  btree.Txn[struct{}]
	homes    btree.Txn[NetworkID]
	claims   btree.Txn[claim]
	resolved btree.Txn[[]netip.Addr]
	verdicts btree.Txn[Verdict]
	placement
	zonesAt bool // a Network object changed, and with it the placement
	changes *changes
}

func (x networkIndex) txn() networksTxn {
	return networksTxn{
		byID: x.byID.Txn(), notes: x.notes.Txn(), refused: x.refused.Txn(), members: x.members.Txn(), homes: x.homes.Txn(),
		claims: x.claims.Txn(), resolved: x.resolved.Txn(), verdicts: x.verdicts.Txn(), placement: x.placement,
	}
}

func (x *networksTxn) commit() networkIndex {
	return networkIndex{
		byID: x.byID.Commit(), notes: x.notes.Commit(), refused: x.refused.Commit(), members: x.members.Commit(), homes: x.homes.Commit(),
		claims: x.claims.Commit(), resolved: x.resolved.Commit(), verdicts: x.verdicts.Commit(), placement: x.placement,
	}
}

// noteObject notes that an object changed which may place endpoints.
func (x *networksTxn) noteObject(key ObjectKey) { x.zonesAt = x.zonesAt || key.Of() == NetworkKind }

// move puts the cluster into another network; empty: it is in none.
func (x *networksTxn) move(id ClusterID, from, to NetworkID) {
	if from != "" {
		x.members.Delete(string(from) + nul + string(id))
		x.homes.Delete(string(id))
	}
	if to != "" {
		x.members.Set(string(to)+nul+string(id), struct{}{})
		x.homes.Set(string(id), to)
	}
}

// indexClaim moves the index of gateways by label from the old shard to the new.
func (x *networksTxn) indexClaim(source ShardKey, key ServiceKey, old, now *Shard) {
	at := func(id NetworkID) string {
		return string(id) + nul + key.sortKey() + nul + source.prefix()
	}
	before, after := old.claims(), now.claims()
	if before != after && before != "" {
		x.claims.Delete(at(before))
	}
	if after != "" {
		x.claims.Set(at(after), claim{service: key, shard: source})
	}
}

// applyResolved applies to which addresses names of gateways resolve.
func (x *networksTxn) applyResolved(delta Delta[Hostname, []netip.Addr]) {
	for _, name := range delta.removed(x.resolvedNames()) {
		if _, had := x.resolved.Delete(string(name)); had {
			x.changes.any = true
		}
	}
	for name, to := range delta.Set {
		to = normalAddresses(to)
		if was, had := x.resolved.Get(string(name)); had && slices.Equal(was, to) {
			continue
		}
		x.resolved.Set(string(name), to)
		x.changes.any = true
	}
}

func (x *networksTxn) resolvedNames() iter.Seq[Hostname] {
	return func(yield func(Hostname) bool) {
		x.resolved.Walk(func(k string, _ []netip.Addr) bool { return !yield(Hostname(k)) })
	}
}
