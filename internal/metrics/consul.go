package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"isthmus.dev/isthmus/federation"
)

// Consul counts requests to Consul.
type Consul struct {
	requests *prometheus.CounterVec
}

func newConsul(r *prometheus.Registry) *Consul {
	return &Consul{requests: counter(r, "consul_requests_total", "Requests to Consul, by kind.", "cluster", "kind")}
}

// Request counts one request, whatever its outcome; kind is one of few fixed words, never a path.
func (m *Consul) Request(cluster federation.ClusterID, kind string) {
	m.requests.WithLabelValues(string(cluster), kind).Inc()
}

// Detached forgets a cluster.
func (m *Consul) Detached(cluster federation.ClusterID) {
	m.requests.DeletePartialMatch(prometheus.Labels{"cluster": string(cluster)})
}
