package main

import (
	"path"
	"time"

	"isthmus.dev/isthmus/federation"
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
			m.Registries.Phase(id, string(cluster.Status.Phase))
		} else {
			m.Registries.Detached(id)
			m.Consul.Detached(id)
		}
	}
	clusters, endpoints := 0, 0
	for cluster := range s.Clusters() {
		clusters++
		endpoints += cluster.Endpoints
	}
	m.Snapshots.Sizes(clusters, s.CountServices(), endpoints)
}

// xdsMetrics counts what happens on the streams of proxies.
type xdsMetrics struct{ *metrics.XDS }

// Count is part of xds.Metrics.
func (m xdsMetrics) Count(e xds.Event, t envoy.Type) {
	switch e {
	case xds.Sent:
		m.Pushed(shortType(t), 0, -1)
	case xds.Acked:
		m.Acked(shortType(t))
	case xds.Nacked:
		m.Nacked(shortType(t))
	case xds.Closed:
		m.StreamRefused(string(e))
	}
}

// Answered is part of xds.Metrics.
func (xdsMetrics) Answered(envoy.Type, time.Duration) {}

func shortType(t envoy.Type) string {
	switch path.Ext(string(t)) {
	case ".Cluster":
		return "CDS"
	case ".ClusterLoadAssignment":
		return "EDS"
	case ".Listener":
		return "LDS"
	case ".RouteConfiguration":
		return "RDS"
	}
	return "other"
}
