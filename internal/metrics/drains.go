package metrics

import "github.com/prometheus/client_golang/prometheus"

// Drains shows what Drain objects do.
type Drains struct {
	percent, endpoints, services *prometheus.GaugeVec
}

// Drain is what one does.
type Drain struct {
	Name                                  string
	Percent, Services, Refused, Endpoints int
}

func newDrains(r *prometheus.Registry) *Drains {
	return &Drains{
		percent: gauge(r, "drain_percent", "Share of the requests to the endpoints of a Drain that other endpoints get now, in percent.",
			"drain"),
		endpoints: gauge(r, "drain_endpoints", "Endpoints of services that get fewer requests because of a Drain now.", "drain"),
		services:  gauge(r, "drain_services", "Services of which a Drain covers endpoints, by state (drained, refused).", "drain", "state"),
	}
}

// Show replaces what was shown.
func (m *Drains) Show(all []Drain) {
	m.percent.Reset()
	m.endpoints.Reset()
	m.services.Reset()
	for _, d := range all {
		m.percent.WithLabelValues(d.Name).Set(float64(d.Percent))
		m.endpoints.WithLabelValues(d.Name).Set(float64(d.Endpoints))
		m.services.WithLabelValues(d.Name, "drained").Set(float64(d.Services))
		m.services.WithLabelValues(d.Name, "refused").Set(float64(d.Refused))
	}
}
