package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"isthmus.dev/isthmus/federation"
)

// Registries counts what comes from attached clusters.
type Registries struct {
	events    *prometheus.CounterVec
	edits     *prometheus.CounterVec
	restarts  *prometheus.CounterVec
	panics    *prometheus.CounterVec
	phase     *prometheus.GaugeVec
	lastEvent *prometheus.GaugeVec
	lastSync  *prometheus.GaugeVec
	objects   *prometheus.GaugeVec
	bytes     *prometheus.GaugeVec
	most      *prometheus.GaugeVec
	mostBytes *prometheus.GaugeVec
	unsaved   *prometheus.GaugeVec
	requests  map[federation.Provider]*prometheus.CounterVec // of registries that poll
}

func newRegistries(r *prometheus.Registry) *Registries {
	return &Registries{
		events:    counter(r, "registry_events_total", "Events that a registry got from its cluster.", "cluster"),
		edits:     counter(r, "registry_edits_total", "Edits that a registry handed to the aggregate.", "cluster"),
		restarts:  counter(r, "registry_restarts_total", "Times that a registry was started again after it failed.", "cluster"),
		panics:    counter(r, "registry_panics_total", "Times that a registry ended by a panic.", "cluster"),
		phase:     gauge(r, "cluster_phase", "1 for the phase that a cluster is in.", "cluster", "phase"),
		lastEvent: gauge(r, "registry_last_event_timestamp_seconds", "When the last event of a cluster came.", "cluster"),
		lastSync:  gauge(r, "registry_last_sync_timestamp_seconds", "When the last complete list of a cluster came.", "cluster"),
		objects:   gauge(r, "registry_objects", "Objects of a cluster that its registry keeps.", "cluster"),
		bytes:     gauge(r, "registry_bytes", "Memory for the objects of a cluster that its registry keeps, estimated.", "cluster"),
		most:      gauge(r, "registry_objects_limit", "The most objects of a cluster that its registry keeps.", "cluster"),
		unsaved:   gauge(r, "cluster_state_unsaved", "1 while the last known good state of a cluster cannot be written.", "cluster"),
		mostBytes: gauge(r, "registry_bytes_limit", "The most memory for the objects of a cluster that its registry keeps.", "cluster"),
		requests: map[federation.Provider]*prometheus.CounterVec{
			federation.Consul: counter(r, "consul_requests_total", "Requests to Consul, by kind.", "cluster", "kind"),
		},
	}
}

// Request counts one request to a cluster, whatever its outcome; kind is one of few fixed words, never a path.
func (m *Registries) Request(of federation.Provider, cluster federation.ClusterID, kind string) {
	if vec := m.requests[of]; vec != nil {
		vec.WithLabelValues(string(cluster), kind).Inc()
	}
}

// Event counts an event of a cluster that came at a time.
func (m *Registries) Event(cluster federation.ClusterID, at time.Time) {
	m.events.WithLabelValues(string(cluster)).Inc()
	m.lastEvent.WithLabelValues(string(cluster)).Set(seconds(at))
}

// Synced notes a complete list.
func (m *Registries) Synced(cluster federation.ClusterID, at time.Time) {
	m.lastSync.WithLabelValues(string(cluster)).Set(seconds(at))
}

// Used says what is kept of a cluster, and how much of it may be.
func (m *Registries) Used(cluster federation.ClusterID, used federation.Usage, limits federation.Limits) {
	m.objects.WithLabelValues(string(cluster)).Set(float64(used.Objects))
	m.bytes.WithLabelValues(string(cluster)).Set(float64(used.Bytes))
	m.most.WithLabelValues(string(cluster)).Set(float64(limits.Objects))
	m.mostBytes.WithLabelValues(string(cluster)).Set(float64(limits.Bytes))
}

// Edit counts an Edit of a cluster.
func (m *Registries) Edit(cluster federation.ClusterID) {
	m.edits.WithLabelValues(string(cluster)).Inc()
}

// RegistryRestarted counts another start of a registry.
func (m *Registries) RegistryRestarted(cluster federation.ClusterID) {
	m.restarts.WithLabelValues(string(cluster)).Inc()
}

// RegistryPanicked counts a registry that ended by a panic.
func (m *Registries) RegistryPanicked(cluster federation.ClusterID) {
	m.panics.WithLabelValues(string(cluster)).Inc()
}

// Phase says the phase of a cluster; the phase before is no longer shown.
func (m *Registries) Phase(cluster federation.ClusterID, phase string) {
	m.phase.DeletePartialMatch(prometheus.Labels{"cluster": string(cluster)})
	m.phase.WithLabelValues(string(cluster), phase).Set(1)
}

// Attached shows what is counted of a cluster, so that the first event is an increase.
func (m *Registries) Attached(cluster federation.ClusterID) {
	for _, vec := range []*prometheus.CounterVec{m.events, m.edits, m.restarts, m.panics} {
		vec.WithLabelValues(string(cluster))
	}
	m.Unsaved(cluster, false)
}

// Unsaved says whether the last known good state of a cluster cannot be written.
func (m *Registries) Unsaved(cluster federation.ClusterID, failing bool) {
	m.unsaved.WithLabelValues(string(cluster)).Set(oneIf(failing))
}

// Detached forgets a cluster.
func (m *Registries) Detached(cluster federation.ClusterID) {
	labels := prometheus.Labels{"cluster": string(cluster)}
	for _, vec := range []interface {
		DeletePartialMatch(prometheus.Labels) int
	}{m.events, m.edits, m.restarts, m.panics, m.phase, m.lastEvent, m.lastSync, m.objects, m.bytes, m.most, m.mostBytes, m.unsaved} {
		vec.DeletePartialMatch(labels)
	}
	for _, vec := range m.requests {
		vec.DeletePartialMatch(labels)
	}
}

func seconds(at time.Time) float64 { return float64(at.UnixMilli()) / 1000 }
