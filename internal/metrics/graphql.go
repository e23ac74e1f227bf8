package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// GraphQL counts operations. An operation is query, mutation or subscription; anything else counts as other, so that no
// caller can make new series. A transport is websocket or sse.
type GraphQL struct {
	requests      *prometheus.CounterVec
	errors        *prometheus.CounterVec
	duration      *prometheus.HistogramVec
	connections   *prometheus.GaugeVec
	subscriptions *prometheus.GaugeVec
	events        *prometheus.CounterVec
	closed        *prometheus.CounterVec
}

func newGraphQL(r *prometheus.Registry) *GraphQL {
	m := &GraphQL{
		requests: counter(r, "graphql_requests_total", "Answered GraphQL requests, by operation; other: refused before the operation was known.",
			"operation"),
		errors:   counter(r, "graphql_errors_total", "GraphQL requests whose answer holds an error.", "operation"),
		duration: latency(r, "graphql_request_seconds", "Time to answer a GraphQL request.", "operation"),

		connections:   gauge(r, "graphql_connections", "Open WebSockets and event streams.", "transport"),
		subscriptions: gauge(r, "graphql_subscriptions", "Subscriptions that are set up.", "transport"),
		events:        counter(r, "graphql_events_total", "Events of subscriptions that were sent.", "transport"),
		closed:        counter(r, "graphql_websocket_closed_total", "WebSockets that ended, by the hub's close code, client or lost.", "code"),
	}
	operations, transports := []string{"query", "mutation", "subscription", "other"}, []string{"websocket", "sse"}
	zero(m.requests, operations)
	zero(m.errors, operations)
	zero(m.events, transports)
	zero(m.closed, []string{"client", "lost"})
	for _, operation := range operations {
		m.duration.WithLabelValues(operation)
	}
	for _, transport := range transports {
		m.connections.WithLabelValues(transport)
		m.subscriptions.WithLabelValues(transport)
	}
	return m
}

// Connections counts a stream that was opened (1) or has ended (-1).
func (m *GraphQL) Connections(transport string, change int) {
	m.connections.WithLabelValues(transport).Add(float64(change))
}

// Subscriptions counts a subscription that was set up (1) or has ended (-1).
func (m *GraphQL) Subscriptions(transport string, change int) {
	m.subscriptions.WithLabelValues(transport).Add(float64(change))
}

// Event counts an event of a subscription.
func (m *GraphQL) Event(transport string) { m.events.WithLabelValues(transport).Inc() }

// Closed counts a WebSocket that ended. The code is one of few fixed ones.
func (m *GraphQL) Closed(code string) { m.closed.WithLabelValues(code).Inc() }

// Request counts an answered operation, how long it took and whether its answer holds an error.
func (m *GraphQL) Request(operation string, took time.Duration, failed bool) {
	switch operation {
	case "query", "mutation", "subscription":
	default:
		operation = "other"
	}
	m.requests.WithLabelValues(operation).Inc()
	m.duration.WithLabelValues(operation).Observe(took.Seconds())
	if failed {
		m.errors.WithLabelValues(operation).Inc()
	}
}
