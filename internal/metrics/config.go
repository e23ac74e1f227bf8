package metrics

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Config counts what happens to the mesh's configuration.
type Config struct {
	counts   map[string]prometheus.Counter // by what the store calls it
	revision prometheus.Gauge
	objects  prometheus.Gauge
	events   *prometheus.CounterVec
	open     *prometheus.GaugeVec
	writable *prometheus.GaugeVec
	wrote    *prometheus.CounterVec
	unwrote  *prometheus.CounterVec
	source   struct{ revision, updated, trouble *prometheus.GaugeVec }
}

func newConfig(r *prometheus.Registry) *Config {
	m := &Config{
		counts: map[string]prometheus.Counter{
			"commits":   counter(r, "config_commits_total", "Changes of the configuration that this hub wrote.").WithLabelValues(),
			"conflicts": counter(r, "config_conflicts_total", "Writes that came too late and were computed again.").WithLabelValues(),
			"orphans":   counter(r, "config_orphans_total", "Staged changes that were never committed and were collected.").WithLabelValues(),
			"retired": counter(r, "config_retired_total",
				"Records and checkpoints that grew older than the history and were removed.").WithLabelValues(),
			"checkpoints": counter(r, "config_checkpoints_total", "Checkpoints that this hub made.").WithLabelValues(),
			"quarantined": counter(r, "config_quarantined_total", "Stored values that were found unusable.").WithLabelValues(),
		},
		revision: gauge(r, "config_revision", "Revision of the configuration that is in force.").WithLabelValues(),
		objects:  gauge(r, "config_objects", "Objects of the configuration that are in force.").WithLabelValues(),
	}
	m.events = counter(r, "config_events_total", "Changes of objects in force, by kind and event (add, update, delete).", "kind", "event")
	m.open = gauge(r, "config_policies_not_enforced", "Stored policies that mean to restrict traffic and are not enforced.", "kind")
	m.writable = gauge(r, "config_store_writable", "1 while the disk of the embedded store takes changes; else 0.", "folder")
	m.wrote = counter(r, "config_status_writes_total", "Statuses of objects that this hub wrote into clusters.", "cluster")
	m.unwrote = counter(r, "config_status_write_failures_total", "Writes of a status that failed.", "cluster", "reason")
	m.source.revision = gauge(r, "config_source_revision", "Revision of a source after its last update.", "source")
	m.source.updated = gauge(r, "config_source_last_update_timestamp_seconds", "When the last update of a source came.", "source")
	m.source.trouble = gauge(r, "config_source_problems", "What is wrong with a source or with what it holds.", "source")
	return m
}

// Count adds to one of the counters; a word that is not known is left alone.
func (m *Config) Count(what string, n int) {
	if c, known := m.counts[what]; known {
		c.Add(float64(n))
	}
}

// InForce says what the configuration is now.
func (m *Config) InForce(revision int64, objects int) {
	m.revision.Set(float64(revision))
	m.objects.Set(float64(objects))
}

// Kinds shows the events of each kind, so that its first event is an increase.
func (m *Config) Kinds(kinds []string) { zero(m.events, kinds, []string{"add", "update", "delete"}) }

// Changed counts a change of an object in force. Both are one of few fixed words.
func (m *Config) Changed(kind, event string) { m.events.WithLabelValues(kind, event).Inc() }

// StatusWrote counts a status that was written into a cluster.
func (m *Config) StatusWrote(cluster string) { m.wrote.WithLabelValues(cluster).Inc() }

// StatusFailed counts a status that was not.
func (m *Config) StatusFailed(cluster, reason string) {
	m.unwrote.WithLabelValues(cluster, reason).Inc()
}

// Unenforced says how many stored policies of the kind mean to restrict traffic
// and are not enforced.
func (m *Config) Unenforced(kind string, objects int) {
	m.open.WithLabelValues(kind).Set(float64(objects))
}

// Writable says whether the disk of the embedded store takes changes.
func (m *Config) Writable(folder string, takes bool) {
	m.writable.WithLabelValues(strings.ToValidUTF8(folder, "\uFFFD")).Set(oneIf(takes))
}

// Source says how a source is doing. One that gave no update yet has only its
// problems.
func (m *Config) Source(name string, revision int64, updated time.Time, problems int) {
	m.source.trouble.WithLabelValues(name).Set(float64(problems))
	if !updated.IsZero() {
		m.source.revision.WithLabelValues(name).Set(float64(revision))
		m.source.updated.WithLabelValues(name).Set(seconds(updated))
	}
}
