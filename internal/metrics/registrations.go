package metrics

import "github.com/prometheus/client_golang/prometheus"

// Registrations counts proxies that register themselves as workloads of a WorkloadGroup, or report the health of a
// WorkloadEntry.
type Registrations struct {
	members prometheus.Gauge
	refused *prometheus.CounterVec
}

func newRegistrations(r *prometheus.Registry) *Registrations {
	return &Registrations{
		members: gauge(r, "registered_proxies",
			"Proxies that registered themselves or report the health of a WorkloadEntry at this hub, and are connected or within "+
				"their grace period.").WithLabelValues(),
		refused: zero(counter(r, "registrations_refused_total",
			"Proxies that may not register themselves, by reason (no_group, no_entry, other_identity, other_address, taken, too_many, invalid, failed).", "reason"),
			[]string{"no_group", "no_entry", "other_identity", "other_address", "taken", "too_many", "invalid", "failed"}),
	}
}

// Members counts proxies that came (1) or went (-1).
func (m *Registrations) Members(change int) { m.members.Add(float64(change)) }

// Refused counts a refusal. The reason is one of few fixed words.
func (m *Registrations) Refused(reason string) { m.refused.WithLabelValues(reason).Inc() }
