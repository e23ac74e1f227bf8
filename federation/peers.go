package federation

import (
	"cmp"
	"maps"
	"slices"
)

// MutualTLS is the TLSMode of endpoints that take mutual TLS with identities of
// the mesh (the value of Istio's label).
const MutualTLS = "istio"

// TakesMutualTLS reports whether a proxy at the endpoint takes mutual TLS.
func (e *Endpoint) TakesMutualTLS() bool { return e.TLSMode == MutualTLS }

// PeerAccounts are the accounts under which endpoints of a service run that take
// mutual TLS: those of one cluster in one network.
type PeerAccounts struct {
	Cluster  ClusterID
	Network  NetworkID
	Accounts []string // sorted; none: they are unknown
}

func (p PeerAccounts) equal(o PeerAccounts) bool {
	return p.Cluster == o.Cluster && p.Network == o.Network && slices.Equal(p.Accounts, o.Accounts)
}

func comparePeers(a, b PeerAccounts) int {
	return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Network, b.Network))
}

// peerKey tells the peers of a service apart.
type peerKey struct {
	cluster ClusterID
	network NetworkID
}

// peersOf finds the peers among the service's endpoints. A cluster that still has
// the service, but none of its endpoints at the moment, keeps the peers that it
// had: endpoints that go and come back change nothing but endpoints (seed 62).
func peersOf(s, before *Service) []PeerAccounts {
	found, present := map[peerKey]map[string]bool{}, map[ClusterID]bool{}
	for _, group := range s.Endpoints {
		for i := range group.Endpoints {
			e := &group.Endpoints[i]
			present[group.ClusterOf(e)] = true
			if e.TakesMutualTLS() {
				addPeer(found, peerKey{group.ClusterOf(e), e.Network}, e, s.Shards.Of(group.Shard))
			}
		}
	}
	var peers []PeerAccounts
	for key, accounts := range found {
		peers = append(peers, PeerAccounts{Cluster: key.cluster, Network: key.network, Accounts: slices.Sorted(maps.Keys(accounts))})
	}
	if before != nil {
		for _, p := range before.Peers {
			if !present[p.Cluster] && s.hasShardOf(p.Cluster) {
				peers = append(peers, p)
			}
		}
	}
	slices.SortFunc(peers, comparePeers)
	return peers
}

func addPeer(found map[peerKey]map[string]bool, key peerKey, e *Endpoint, declared *Shard) {
	if found[key] == nil {
		found[key] = map[string]bool{}
	}
	if e.ServiceAccount != "" {
		found[key][e.ServiceAccount] = true
	}
	for _, account := range declared.ServiceAccounts {
		found[key][account] = true
	}
}

func (s *Service) hasShardOf(id ClusterID) bool {
	for shard := range s.Shards.All() {
		if shard.Cluster == id {
			return true
		}
	}
	return false
}
