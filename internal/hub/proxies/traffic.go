package proxies

import (
	"cmp"
	"time"

	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/internal/metrics"
	"isthmus.dev/isthmus/xds"
	"isthmus.dev/isthmus/xds/envoy"
)

// traffic counts what happens on the streams of proxies.
type traffic struct{ to *metrics.XDS }

// Count is part of xds.Metrics.
func (m traffic) Count(e xds.Event, t envoy.Type) {
	switch e {
	case xds.Sent: // Pushed says more of it
	case xds.Acked:
		m.to.Acked(serviceOf(t))
	case xds.Nacked:
		m.to.Nacked(serviceOf(t))
	case xds.Built:
		m.to.Built(t.Row().Service)
	case xds.TooMuch, xds.Malformed, xds.TooSlow, xds.Denied:
		m.to.StreamEnded(string(e))
	default:
		m.to.Event(string(e), t.Row().Service)
	}
}

// serviceOf is the short name of a type; that of configuration has none of its own.
func serviceOf(t envoy.Type) string { return cmp.Or(t.Row().Service, "MCP") }

// services are the short names of all types.
func services() []string {
	names := []string{serviceOf("")}
	for _, row := range envoy.Types() {
		names = append(names, row.Service)
	}
	return names
}

// Answered is part of xds.Metrics.
func (m traffic) Answered(t envoy.Type, after time.Duration) {
	m.to.Answered(t.Row().Service, after)
}

// Streams is part of xds.Traffic.
func (m traffic) Streams(p fleet.Protocol, change int) { m.to.Streams(string(p), change) }

// Pushed is part of xds.Traffic.
func (m traffic) Pushed(t envoy.Type, bytes int, waited time.Duration) {
	m.to.Pushed(serviceOf(t), bytes, waited)
}
