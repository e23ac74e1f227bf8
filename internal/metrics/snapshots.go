package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Snapshots counts what the aggregate publishes.
type Snapshots struct {
	version, services, endpoints, clusters prometheus.Gauge
	next                                   prometheus.Observer
	gateways, gatewaysSince                *prometheus.GaugeVec
	refused, cutOff, quarantined           *prometheus.GaugeVec
}

// Network is what is known of a network's gateways.
type Network struct {
	Verdicts []Gateway
	Refused  int // gateways, or addresses of them, that are not used
	// CutOff has every network that probes it, and whether it reaches none of the
	// gateways.
	CutOff map[string]bool
}

// Gateway is the verdict on one way: from a network to a gateway of another.
type Gateway struct {
	Network, Gateway, Observer string
	Reachable                  bool
	Since                      time.Time
}

func newSnapshots(r *prometheus.Registry) *Snapshots {
	return &Snapshots{
		version:   gauge(r, "snapshot_version", "Version of the latest snapshot.").WithLabelValues(),
		services:  gauge(r, "snapshot_services", "Services in the latest snapshot.").WithLabelValues(),
		endpoints: gauge(r, "snapshot_endpoints", "Endpoints in the latest snapshot.").WithLabelValues(),
		clusters:  gauge(r, "snapshot_clusters", "Clusters in the latest snapshot.").WithLabelValues(),
		next:      latency(r, "snapshot_next_seconds", "Time to make a snapshot from the one before.").WithLabelValues(),
		gateways: gauge(r, "gateway_reachable", "Whether probes from a network reach a gateway of another one.",
			"network", "gateway", "observer"),
		gatewaysSince: gauge(r, "gateway_verdict_since_timestamp_seconds", "Since when a gateway is, or is not, reachable from a network.",
			"network", "gateway", "observer"),
		refused: gauge(r, "network_gateways_refused", "Gateways of a network, or addresses of them, that are not used.", "network"),
		quarantined: gauge(r, "quarantined_objects",
			"Objects and services over which the hub panicked, or with which it cannot build what proxies get.", "kind"),
		cutOff: gauge(r, "network_cut_off", "Whether probes from a network reach no gateway of another one.", "network", "observer"),
	}
}

// Published notes a new snapshot and how long it took to make.
func (m *Snapshots) Published(version uint64, took time.Duration) {
	m.version.Set(float64(version))
	m.next.Observe(took.Seconds())
}

// Gateways replaces what is known of a network's gateways; nil: there is no such
// network.
func (m *Snapshots) Gateways(network string, now *Network) {
	for _, of := range []*prometheus.GaugeVec{m.gateways, m.gatewaysSince, m.refused, m.cutOff} {
		of.DeletePartialMatch(prometheus.Labels{"network": network})
	}
	if now == nil {
		return
	}
	m.refused.WithLabelValues(network).Set(float64(now.Refused))
	for observer, cutOff := range now.CutOff {
		m.cutOff.WithLabelValues(network, observer).Set(oneIf(cutOff))
	}
	for _, g := range now.Verdicts {
		m.gateways.WithLabelValues(g.Network, g.Gateway, g.Observer).Set(oneIf(g.Reachable))
		m.gatewaysSince.WithLabelValues(g.Network, g.Gateway, g.Observer).Set(seconds(g.Since))
	}
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// Quarantined says how many objects of the kind the hub panicked over.
func (m *Snapshots) Quarantined(kind string, n int) {
	m.quarantined.WithLabelValues(kind).Set(float64(n))
}

// Sizes says how much the latest snapshot holds.
func (m *Snapshots) Sizes(clusters, services, endpoints int) {
	m.clusters.Set(float64(clusters))
	m.services.Set(float64(services))
	m.endpoints.Set(float64(endpoints))
}
