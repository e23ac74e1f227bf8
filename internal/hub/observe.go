package hub

import (
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/internal/metrics"
	"isthmus.dev/isthmus/xds"
	"isthmus.dev/isthmus/xds/envoy"
)

// snapshotMetrics counts what the aggregate publishes.
type snapshotMetrics struct{ *metrics.Metrics }

// Published is part of federation.Observer.
func (m snapshotMetrics) Published(s *federation.Snapshot, c federation.ChangeSet, took time.Duration) {
	m.Snapshots.Published(s.Version(), took)
	for _, id := range c.Clusters {
		if cluster, attached := s.Cluster(id); attached {
			m.Registries.Attached(id)
			m.Clusters.Attached(id)
			m.Registries.Phase(id, string(cluster.Status.Phase))
		} else {
			m.Registries.Detached(id)
			m.Consul.Detached(id)
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
	m.Snapshots.Sizes(clusters, s.CountServices(), endpoints)
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

// xdsMetrics counts what happens on the streams of proxies.
type xdsMetrics struct{ to *metrics.XDS }

// Count is part of xds.Metrics.
func (m xdsMetrics) Count(e xds.Event, t envoy.Type) {
	switch e {
	case xds.Sent: // Pushed says more of it
	case xds.Acked:
		m.to.Acked(t.Row().Service)
	case xds.Nacked:
		m.to.Nacked(t.Row().Service)
	case xds.Built:
		m.to.Built(t.Row().Service)
	case xds.TooMuch, xds.Malformed, xds.TooSlow, xds.Denied:
		m.to.StreamEnded(string(e))
	default:
		m.to.Event(string(e), t.Row().Service)
	}
}

// Answered is part of xds.Metrics.
func (m xdsMetrics) Answered(t envoy.Type, after time.Duration) {
	m.to.Answered(t.Row().Service, after)
}

// Streams is part of xds.Traffic.
func (m xdsMetrics) Streams(p fleet.Protocol, change int) { m.to.Streams(string(p), change) }

// Pushed is part of xds.Traffic.
func (m xdsMetrics) Pushed(t envoy.Type, bytes int, waited time.Duration) {
	m.to.Pushed(t.Row().Service, bytes, waited)
}
