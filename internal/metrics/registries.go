package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Registries counts what comes from attached clusters.
type Registries struct {
	events    *prometheus.CounterVec
	edits     *prometheus.CounterVec
	restarts  *prometheus.CounterVec
	phase     *prometheus.GaugeVec
	lastEvent *prometheus.GaugeVec
	lastSync  *prometheus.GaugeVec
}

func newRegistries(r *prometheus.Registry) *Registries {
	return &Registries{
		events:    counter(r, "registry_events_total", "Events that a registry got from its cluster.", "cluster"),
		edits:     counter(r, "registry_edits_total", "Edits that a registry handed to the aggregate.", "cluster"),
		restarts:  counter(r, "registry_restarts_total", "Times that a registry was started again after it failed.", "cluster"),
		phase:     gauge(r, "cluster_phase", "1 for the phase that a cluster is in.", "cluster", "phase"),
		lastEvent: gauge(r, "registry_last_event_timestamp_seconds", "When the last event of a cluster came.", "cluster"),
		lastSync:  gauge(r, "registry_last_sync_timestamp_seconds", "When the last complete list of a cluster came.", "cluster"),
	}
}

// Event counts an event of a cluster that came at a time.
func (m *Registries) Event(cluster string, at time.Time) {
	m.events.WithLabelValues(cluster).Inc()
	m.lastEvent.WithLabelValues(cluster).Set(seconds(at))
}

// Synced notes a complete list.
func (m *Registries) Synced(cluster string, at time.Time) {
	m.lastSync.WithLabelValues(cluster).Set(seconds(at))
}

// Edit counts an Edit of a cluster.
func (m *Registries) Edit(cluster string) { m.edits.WithLabelValues(cluster).Inc() }

// Restart counts another start of a registry.
func (m *Registries) Restart(cluster string) { m.restarts.WithLabelValues(cluster).Inc() }

// Phase says the phase of a cluster; the phase before is no longer shown.
func (m *Registries) Phase(cluster, phase string) {
	m.phase.DeletePartialMatch(prometheus.Labels{"cluster": cluster})
	m.phase.WithLabelValues(cluster, phase).Set(1)
}

// Detached forgets a cluster.
func (m *Registries) Detached(cluster string) {
	labels := prometheus.Labels{"cluster": cluster}
	for _, vec := range []interface {
		DeletePartialMatch(prometheus.Labels) int
	}{m.events, m.edits, m.restarts, m.phase, m.lastEvent, m.lastSync} {
		vec.DeletePartialMatch(labels)
	}
}

func seconds(at time.Time) float64 { return float64(at.UnixMilli()) / 1000 }
