package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"isthmus.dev/isthmus/federation"
)

// Clusters counts how clusters are attached, and says how their credentials are.
type Clusters struct {
	changes  *prometheus.CounterVec
	unusable *prometheus.CounterVec
	expires  *prometheus.GaugeVec
}

func newClusters(r *prometheus.Registry) *Clusters {
	return &Clusters{
		changes:  counter(r, "cluster_changes_total", "Requests to attach, rotate, confirm or detach a cluster, by what became of them.", "action", "outcome"),
		unusable: counter(r, "cluster_credentials_unusable_total", "Times that the kept credentials of a cluster could not be opened.", "cluster"),
		expires:  gauge(r, "cluster_credentials_expiry_timestamp_seconds", "When the kept credentials of a cluster end.", "cluster"),
	}
}

// Change counts a request.
func (m *Clusters) Change(action, outcome string) { m.changes.WithLabelValues(action, outcome).Inc() }

// Unusable counts credentials that could not be opened.
func (m *Clusters) Unusable(cluster federation.ClusterID) {
	m.unusable.WithLabelValues(string(cluster)).Inc()
}

// Expires says when the credentials of a cluster end; the zero time is never.
func (m *Clusters) Expires(cluster federation.ClusterID, at time.Time) {
	if at.IsZero() {
		m.expires.DeleteLabelValues(string(cluster))
		return
	}
	m.expires.WithLabelValues(string(cluster)).Set(seconds(at))
}

// Detached forgets a cluster.
func (m *Clusters) Detached(cluster federation.ClusterID) {
	m.expires.DeleteLabelValues(string(cluster))
	m.unusable.DeleteLabelValues(string(cluster))
}
