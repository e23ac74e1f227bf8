package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"isthmus.dev/isthmus/federation"
)

// Clusters counts how clusters are attached, and says how their credentials are.
type Clusters struct {
	changes    *prometheus.CounterVec
	unusable   *prometheus.CounterVec
	expires    *prometheus.GaugeVec
	remotes    *prometheus.GaugeVec
	unreadable *prometheus.CounterVec
	rootMaps   *prometheus.GaugeVec
	imports    *prometheus.CounterVec
	unimported *prometheus.CounterVec
}

// importFailures are the reasons for which a ServiceImport is not written.
var importFailures = []string{"conflict", "forbidden", "refused", "unreachable"}

func newClusters(r *prometheus.Registry) *Clusters {
	return &Clusters{
		changes: zero(counter(r, "cluster_changes_total", "Requests to attach, rotate, confirm or detach a cluster, by their result.",
			"action", "outcome"),
			[]string{"attach", "rotate", "confirm", "detach"}, []string{"done", "refused", "failed"}),
		unusable: counter(r, "cluster_credentials_unusable_total",
			"Times that the kept credentials of a cluster could not be opened.", "cluster"),
		expires: gauge(r, "cluster_credentials_expiry_timestamp_seconds", "When the kept credentials of a cluster end.", "cluster"),
		remotes: gauge(r, "cluster_remotes", "Clusters that objects of a cluster name, by the kind of object.", "cluster", "kind"),
		unreadable: counter(r, "cluster_remotes_unreadable_total", "Times that the objects of a cluster that name others could not be read.",
			"cluster", "kind"),
		rootMaps: gauge(r, "cluster_root_configmaps",
			"Namespaces of a cluster by the content of their ConfigMap with the roots of the mesh (current, others).", "cluster", "content"),
		imports: counter(r, "cluster_serviceimport_writes_total", "ServiceImports that this hub created, changed or deleted in a cluster.",
			"cluster"),
		unimported: counter(r, "cluster_serviceimport_write_failures_total", "Writes of a ServiceImport that failed.", "cluster", "reason"),
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

// Remotes says how many clusters the objects of a kind in a cluster name; fewer than 0: none
// are read.
func (m *Clusters) Remotes(cluster federation.ClusterID, kind string, n int) {
	if n < 0 {
		m.remotes.DeleteLabelValues(string(cluster), kind)
		return
	}
	m.remotes.WithLabelValues(string(cluster), kind).Set(float64(n))
}

// RemotesUnreadable counts that the objects of a kind in a cluster could not be read.
func (m *Clusters) RemotesUnreadable(cluster federation.ClusterID, kind string) {
	m.unreadable.WithLabelValues(string(cluster), kind).Inc()
}

// RootMaps says how many namespaces have the hub's roots, and how many what others wrote.
func (m *Clusters) RootMaps(cluster federation.ClusterID, have, others int) {
	m.rootMaps.WithLabelValues(string(cluster), "current").Set(float64(have))
	m.rootMaps.WithLabelValues(string(cluster), "others").Set(float64(others))
}

// ImportWrote counts a ServiceImport that was written into a cluster.
func (m *Clusters) ImportWrote(cluster federation.ClusterID) {
	m.imports.WithLabelValues(string(cluster)).Inc()
}

// ImportFailed counts one that was not, by the reason.
func (m *Clusters) ImportFailed(cluster federation.ClusterID, reason string) {
	m.unimported.WithLabelValues(string(cluster), reason).Inc()
}

// Attached shows what is counted of a cluster, so that the first event is an increase.
func (m *Clusters) Attached(cluster federation.ClusterID) {
	m.unusable.WithLabelValues(string(cluster))
	m.imports.WithLabelValues(string(cluster))
	zero(m.unimported, []string{string(cluster)}, importFailures)
}

// Detached forgets a cluster.
func (m *Clusters) Detached(cluster federation.ClusterID) {
	m.expires.DeleteLabelValues(string(cluster))
	m.unusable.DeleteLabelValues(string(cluster))
	m.remotes.DeletePartialMatch(prometheus.Labels{"cluster": string(cluster)})
	m.unreadable.DeletePartialMatch(prometheus.Labels{"cluster": string(cluster)})
	m.rootMaps.DeletePartialMatch(prometheus.Labels{"cluster": string(cluster)})
	m.imports.DeleteLabelValues(string(cluster))
	m.unimported.DeletePartialMatch(prometheus.Labels{"cluster": string(cluster)})
}
