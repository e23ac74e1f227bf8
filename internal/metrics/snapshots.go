package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Snapshots counts what the aggregate publishes.
type Snapshots struct {
	version, services, endpoints, clusters prometheus.Gauge
	next                                   prometheus.Observer
}

func newSnapshots(r *prometheus.Registry) *Snapshots {
	return &Snapshots{
		version:   gauge(r, "snapshot_version", "Version of the latest snapshot.").WithLabelValues(),
		services:  gauge(r, "snapshot_services", "Services in the latest snapshot.").WithLabelValues(),
		endpoints: gauge(r, "snapshot_endpoints", "Endpoints in the latest snapshot.").WithLabelValues(),
		clusters:  gauge(r, "snapshot_clusters", "Clusters in the latest snapshot.").WithLabelValues(),
		next:      latency(r, "snapshot_next_seconds", "Time to make a snapshot from the one before.").WithLabelValues(),
	}
}

// Published notes a new snapshot and how long it took to make.
func (m *Snapshots) Published(version uint64, took time.Duration) {
	m.version.Set(float64(version))
	m.next.Observe(took.Seconds())
}

// Sizes says how much the latest snapshot holds.
func (m *Snapshots) Sizes(clusters, services, endpoints int) {
	m.clusters.Set(float64(clusters))
	m.services.Set(float64(services))
	m.endpoints.Set(float64(endpoints))
}
