// Package collectors counts what the hub has, for its metrics.
package collectors

import (
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/metrics"
)

// Snapshots counts what the aggregate publishes.
type Snapshots struct{ *metrics.Metrics }

// Published is part of federation.Observer.
func (m Snapshots) Published(s *federation.Snapshot, c federation.ChangeSet, took time.Duration) {
	m.Snapshots.Published(s.Version(), took)
	for _, id := range c.Clusters {
		if cluster, attached := s.Cluster(id); attached {
			m.Registries.Attached(id)
			m.Clusters.Attached(id)
			m.Registries.Phase(id, string(cluster.Status.Phase))
		} else {
			m.Registries.Detached(id)
			m.Clusters.Detached(id)
		}
	}
	for _, id := range c.Networks {
		m.Snapshots.Gateways(string(id), gatewaysOf(s, id))
	}
	clusters, endpoints := 0, 0
	for cluster := range s.Clusters() {
		clusters++
		endpoints += cluster.Endpoints
	}
	m.Snapshots.Sizes(clusters, s.Services().Len(), endpoints)
}

// gatewaysOf is what is known of the network's gateways; nil: the network is gone.
func gatewaysOf(s *federation.Snapshot, id federation.NetworkID) *metrics.Network {
	n, known := s.Network(id)
	if !known {
		return nil
	}
	all := &metrics.Network{Refused: len(n.Refused), CutOff: map[string]bool{}}
	for _, g := range n.Gateways {
		for _, v := range g.Verdicts {
			all.CutOff[string(v.Observer)] = n.Unreachable(v.Observer)
			all.Verdicts = append(all.Verdicts, metrics.Gateway{
				Network: string(id), Gateway: g.Address.String(), Observer: string(v.Observer), Reachable: v.Reachable, Since: v.Since,
			})
		}
	}
	return all
}
