package metrics

import "github.com/prometheus/client_golang/prometheus"

// Server counts the connections of the hub's listeners.
type Server struct {
	open       *prometheus.GaugeVec
	refused    *prometheus.CounterVec
	handshakes *prometheus.CounterVec
}

func newServer(r *prometheus.Registry) *Server {
	s := &Server{
		open: gauge(r, "connections", "Open connections, by listener (graphql, xds, health).", "listener"),
		handshakes: counter(r, "tls_handshake_failures_total",
			"TLS handshakes that failed, by listener (xds) and reason (closed, timeout, not_tls, certificate, rejected, protocol).",
			"listener", "reason"),
		refused: counter(r, "connections_refused_total",
			"Connections that were closed because of a limit, new or pending, by listener and reason (total, source, descriptors, messages).",
			"listener", "reason"),
	}
	for _, listener := range []string{"graphql", "xds", "health"} {
		s.open.WithLabelValues(listener)
		for _, reason := range []string{"total", "source", "descriptors"} {
			s.refused.WithLabelValues(listener, reason)
		}
	}
	s.refused.WithLabelValues("xds", "messages")
	zero(s.handshakes, []string{"xds"}, []string{"closed", "timeout", "not_tls", "certificate", "rejected", "protocol"})
	return s
}

// Connections counts connections that were opened (1) or have ended (-1). The listener is one of few fixed words.
func (m *Server) Connections(listener string, change int) {
	m.open.WithLabelValues(listener).Add(float64(change))
}

// ConnectionRefused counts a connection that was closed because of a limit. Both are one of few fixed words.
func (m *Server) ConnectionRefused(listener, why string) {
	m.refused.WithLabelValues(listener, why).Inc()
}

// HandshakeFailed counts a TLS handshake that failed. Both are one of few fixed words.
func (m *Server) HandshakeFailed(listener, why string) {
	m.handshakes.WithLabelValues(listener, why).Inc()
}
