package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// XDS counts what proxies ask and get. A type is the short name of a resource type: CDS, EDS, LDS, RDS,
// SDS, NDS, PCDS, or MCP for configuration.
type XDS struct {
	streams *prometheus.GaugeVec
	ended   *prometheus.CounterVec
	pushes  *prometheus.CounterVec
	bytes   *prometheus.CounterVec
	sizes   *prometheus.HistogramVec
	waited  *prometheus.HistogramVec
	acks    *prometheus.CounterVec
	nacks   *prometheus.CounterVec
	answers *prometheus.HistogramVec
	built   *prometheus.CounterVec
	events  *prometheus.CounterVec

	findings *prometheus.GaugeVec
	unknown  prometheus.Gauge
}

// Findings counts what keeps objects, or parts of them, from connected proxies.
func (m *XDS) Findings(code string, change int) {
	m.findings.WithLabelValues(code).Add(float64(change))
}

// UnknownNames measures what names without a resource cost, in bytes.
func (m *XDS) UnknownNames(change int) { m.unknown.Add(float64(change)) }

func newXDS(r *prometheus.Registry) *XDS {
	m := &XDS{
		findings: gauge(r, "xds_findings", "Reasons for which objects, or parts of them, have no effect on connected proxies, by code.", "code"),
		unknown:  gauge(r, "xds_unknown_name_bytes", "Memory for names that proxies request and for which no resource exists.").WithLabelValues(),
		streams:  gauge(r, "xds_streams", "Open streams by protocol (sotw, delta).", "protocol"),
		ended: counter(r, "xds_streams_ended_total",
			"Streams that the hub ended because of what the client did, by reason (too_much, malformed, too_slow, denied).", "reason"),
		pushes:  counter(r, "xds_pushes_total", "Responses that were sent.", "type"),
		bytes:   counter(r, "xds_sent_bytes_total", "Bytes of the responses that were sent.", "type"),
		sizes:   sizes(r, "xds_response_bytes", "Bytes of each response that was sent.", "type"),
		waited:  latency(r, "xds_push_seconds", "Time from a stream's seeing a change to the sending of it.", "type"),
		acks:    counter(r, "xds_acks_total", "Responses that proxies accepted.", "type"),
		nacks:   counter(r, "xds_nacks_total", "Responses that proxies refused.", "type"),
		answers: latency(r, "xds_ack_seconds", "Time from sending a response to the proxy's accepting it.", "type"),
		built:   counter(r, "xds_resources_built_total", "Resources that were built, not found ready.", "type"),
		events: counter(r, "xds_events_total",
			"Rare events (stale_request, unknown_type, empty_held, build_failed, untraced_refusal, secret_refused, not_serving, reports_refused); the type is empty where none is meant.", "event", "type"),
	}
	for _, protocol := range []string{"sotw", "delta"} {
		m.streams.WithLabelValues(protocol)
	}
	zero(m.ended, []string{"too_much", "malformed", "too_slow", "denied"})
	zero(m.events, []string{"empty_held"}, []string{"CDS", "LDS"})
	zero(m.events, []string{"untraced_refusal"}, []string{"LDS", "RDS"})
	zero(m.events, []string{"secret_refused"}, []string{"SDS"})
	zero(m.events, []string{"unknown_type", "stream_panic", "not_serving", "reports_refused"}, []string{""})
	return m
}

// Types shows the series of each type that is served, so that its first event is an increase.
func (m *XDS) Types(types []string) {
	for _, vec := range []*prometheus.CounterVec{m.pushes, m.bytes, m.acks, m.nacks, m.built} {
		zero(vec, types)
	}
	for _, typ := range types {
		m.sizes.WithLabelValues(typ)
		m.waited.WithLabelValues(typ)
		m.answers.WithLabelValues(typ)
	}
	zero(m.events, []string{"stale_request", "build_failed"}, types)
}

// Streams counts a stream that was opened (1) or closed (-1).
func (m *XDS) Streams(protocol string, change int) {
	m.streams.WithLabelValues(protocol).Add(float64(change))
}

// StreamEnded counts a stream that the hub ended. The reason is one of few fixed words.
func (m *XDS) StreamEnded(reason string) { m.ended.WithLabelValues(reason).Inc() }

// Pushed counts a response with its bytes. waited is the time since its first change was seen; negative when the response
// answers a request and not a change.
func (m *XDS) Pushed(typ string, bytes int, waited time.Duration) {
	m.pushes.WithLabelValues(typ).Inc()
	m.bytes.WithLabelValues(typ).Add(float64(max(bytes, 0)))
	m.sizes.WithLabelValues(typ).Observe(float64(max(bytes, 0)))
	if waited >= 0 {
		m.waited.WithLabelValues(typ).Observe(waited.Seconds())
	}
}

// Acked counts an ACK.
func (m *XDS) Acked(typ string) { m.acks.WithLabelValues(typ).Inc() }

// Nacked counts a NACK.
func (m *XDS) Nacked(typ string) { m.nacks.WithLabelValues(typ).Inc() }

// Answered notes how long a proxy took to accept a response.
func (m *XDS) Answered(typ string, after time.Duration) {
	m.answers.WithLabelValues(typ).Observe(after.Seconds())
}

// Built counts a resource that was built.
func (m *XDS) Built(typ string) { m.built.WithLabelValues(typ).Inc() }

// Event counts what is rare. The event is one of few fixed words.
func (m *XDS) Event(event, typ string) { m.events.WithLabelValues(event, typ).Inc() }
