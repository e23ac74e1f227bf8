// Package metrics counts what the hub does and shows it as Prometheus text. Every method is safe for concurrent use, does
// not block, and takes plain values, so that other rooms declare the small interfaces that they need.
package metrics

import (
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const namespace = "isthmus"

// Metrics is the root; each concern has its own part.
type Metrics struct {
	Registries *Registries
	Snapshots  *Snapshots
	XDS        *XDS
	GraphQL    *GraphQL
	Config     *Config
	Clusters   *Clusters
	Identity   *Identity
	Server     *Server
	KeySets    *KeySets
	Drains     *Drains
	// Registrations are those of proxies that register themselves.
	Registrations *Registrations

	build    *prometheus.GaugeVec
	registry *prometheus.Registry
}

// New makes a registry of its own, with the Go and process collectors; nothing global is used.
func New() *Metrics {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return &Metrics{
		Registries: newRegistries(registry),
		Snapshots:  newSnapshots(registry),
		XDS:        newXDS(registry),
		GraphQL:    newGraphQL(registry),
		Config:     newConfig(registry),
		Clusters:   newClusters(registry),
		Identity:   newIdentity(registry),
		Server:     newServer(registry),
		KeySets:    newKeySets(registry),
		Drains:     newDrains(registry),

		Registrations: newRegistrations(registry),

		build: gauge(registry, "build_info", "1; the labels say what runs: version, commit and version of Go.",
			"version", "revision", "goversion"),
		registry: registry,
	}
}

// Build says what runs.
func (m *Metrics) Build(version, revision, goVersion string) {
	m.build.WithLabelValues(version, revision, goVersion).Set(1)
}

// Handler answers /metrics after it has called the functions, which measure what is not
// counted as it happens. A failing collector is excluded from the answer and does not fail it.
func (m *Metrics) Handler(measure ...func()) http.Handler {
	shown := promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: 4, Timeout: 10 * time.Second,
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, now := range measure {
			now()
		}
		shown.ServeHTTP(w, r)
	})
}

func counter(r *prometheus.Registry, name, help string, labels ...string) *prometheus.CounterVec {
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
	r.MustRegister(vec)
	return vec
}

// zero shows the counter for every combination of the words of its labels, so that the first event is an increase.
func zero(vec *prometheus.CounterVec, words ...[]string) *prometheus.CounterVec {
	for _, values := range combinations(words) {
		vec.WithLabelValues(values...)
	}
	return vec
}

// combinations are all lists with a word of each.
func combinations(words [][]string) [][]string {
	all := [][]string{nil}
	for _, next := range words {
		var longer [][]string
		for _, c := range all {
			for _, w := range next {
				longer = append(longer, append(slices.Clone(c), w))
			}
		}
		all = longer
	}
	return all
}

func gauge(r *prometheus.Registry, name, help string, labels ...string) *prometheus.GaugeVec {
	vec := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, labels)
	r.MustRegister(vec)
	return vec
}

// latency has buckets from 50 µs to 13 s.
func latency(r *prometheus.Registry, name, help string, labels ...string) *prometheus.HistogramVec {
	return histogram(r, prometheus.HistogramOpts{Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(50e-6, 4, 10)}, labels)
}

// sizes has the buckets that istiod has for what it sends, and smaller ones: most responses are about one change.
func sizes(r *prometheus.Registry, name, help string, labels ...string) *prometheus.HistogramVec {
	return histogram(r, prometheus.HistogramOpts{Name: name, Help: help, Buckets: []float64{100, 1e3, 1e4, 1e5, 1e6, 4e6, 1e7, 4e7}}, labels)
}

func histogram(r *prometheus.Registry, o prometheus.HistogramOpts, labels []string) *prometheus.HistogramVec {
	o.Namespace = namespace
	vec := prometheus.NewHistogramVec(o, labels)
	r.MustRegister(vec)
	return vec
}
