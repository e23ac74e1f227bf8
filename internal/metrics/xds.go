package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// XDS counts what proxies ask and get. A type is the short name of a resource type: CDS, EDS, LDS, RDS.
type XDS struct {
	streams  *prometheus.GaugeVec
	pushes   *prometheus.CounterVec
	latency  *prometheus.HistogramVec
	acks     *prometheus.CounterVec
	nacks    *prometheus.CounterVec
	built    *prometheus.CounterVec
	bytes    *prometheus.CounterVec
	refusals *prometheus.CounterVec
}

func newXDS(r *prometheus.Registry) *XDS {
	return &XDS{
		streams:  gauge(r, "xds_streams", "Open streams by protocol (sotw, delta).", "protocol"),
		pushes:   counter(r, "xds_pushes_total", "Responses that were sent.", "type"),
		latency:  latency(r, "xds_push_latency_seconds", "Time from the publishing of a snapshot to the sending of what it changed.", "type"),
		acks:     counter(r, "xds_acks_total", "Responses that proxies accepted.", "type"),
		nacks:    counter(r, "xds_nacks_total", "Responses that proxies refused.", "type"),
		built:    counter(r, "xds_resources_built_total", "Resources that were built.", "type"),
		bytes:    counter(r, "xds_sent_bytes_total", "Bytes of the resources that were sent.", "type"),
		refusals: counter(r, "xds_streams_refused_total", "Streams that were refused, by reason.", "reason"),
	}
}

// StreamOpened counts a stream; StreamClosed must follow once.
func (m *XDS) StreamOpened(protocol string) { m.streams.WithLabelValues(protocol).Inc() }

// StreamClosed ends what StreamOpened began.
func (m *XDS) StreamClosed(protocol string) { m.streams.WithLabelValues(protocol).Dec() }

// StreamRefused counts a stream that was not let in. The reason is one of few fixed words.
func (m *XDS) StreamRefused(reason string) { m.refusals.WithLabelValues(reason).Inc() }

// Pushed counts a response with the bytes of its resources. since is the time from publishing to sending; negative when
// the response answers a request and not a change.
func (m *XDS) Pushed(typ string, bytes int, since time.Duration) {
	m.pushes.WithLabelValues(typ).Inc()
	m.bytes.WithLabelValues(typ).Add(float64(max(bytes, 0)))
	if since >= 0 {
		m.latency.WithLabelValues(typ).Observe(since.Seconds())
	}
}

// Acked counts an ACK.
func (m *XDS) Acked(typ string) { m.acks.WithLabelValues(typ).Inc() }

// Nacked counts a NACK.
func (m *XDS) Nacked(typ string) { m.nacks.WithLabelValues(typ).Inc() }

// Built counts resources that were built, not those that were found ready.
func (m *XDS) Built(typ string, resources int) {
	m.built.WithLabelValues(typ).Add(float64(max(resources, 0)))
}
