package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// GraphQL counts operations. An operation is query, mutation or subscription; anything else counts as other, so that no
// caller can make new series.
type GraphQL struct {
	requests *prometheus.CounterVec
	errors   *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

func newGraphQL(r *prometheus.Registry) *GraphQL {
	return &GraphQL{
		requests: counter(r, "graphql_requests_total", "Answered GraphQL requests, by operation; other: refused before the operation was known.", "operation"),
		errors:   counter(r, "graphql_errors_total", "GraphQL requests whose answer holds an error.", "operation"),
		duration: latency(r, "graphql_request_seconds", "Time to answer a GraphQL request.", "operation"),
	}
}

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
