package metrics

import "github.com/prometheus/client_golang/prometheus"

// KeySets counts what the hub fetches to verify tokens by.
type KeySets struct {
	fetches *prometheus.CounterVec
	sources *prometheus.GaugeVec
}

func newKeySets(r *prometheus.Registry) *KeySets {
	m := &KeySets{
		fetches: counter(r, "jwks_fetches_total", "Times that keys of tokens were fetched, by outcome (done, failed).", "outcome"),
		sources: gauge(r, "jwks_sources", "URIs from which keys of tokens are fetched, by state (fresh, stale, missing).", "state"),
	}
	zero(m.fetches, []string{"done", "failed"})
	m.Sources(0, 0, 0)
	return m
}

// Fetched counts a fetch.
func (m *KeySets) Fetched(ok bool) {
	outcome := "failed"
	if ok {
		outcome = "done"
	}
	m.fetches.WithLabelValues(outcome).Inc()
}

// Sources shows how many URIs there are: with keys of the last try, with older keys, and without any.
func (m *KeySets) Sources(fresh, stale, missing int) {
	m.sources.WithLabelValues("fresh").Set(float64(fresh))
	m.sources.WithLabelValues("stale").Set(float64(stale))
	m.sources.WithLabelValues("missing").Set(float64(missing))
}
