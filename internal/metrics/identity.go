package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Identity counts proofs and certificates, and shows how the authority is.
type Identity struct {
	proofs, certificates *prometheus.CounterVec
	rotations            *prometheus.CounterVec
	roots, trouble       prometheus.Gauge
	signerEnds, rootEnds *prometheus.GaugeVec
}

// Authority is how the certificate authority is. The times are zero without a signer.
type Authority struct {
	Roots                int
	SignerEnds, RootEnds time.Time
	Trouble              bool
}

func newIdentity(r *prometheus.Registry) *Identity {
	m := &Identity{
		proofs: counter(r, "access_proofs_total",
			"Callers who showed who they are, by method (certificate, token, none) and outcome (proven, refused, throttled, unproven).",
			"method", "outcome"),
		certificates: counter(r, "certificates_total",
			"Certificates that were asked for, by method (csr, sds) and outcome (signed, refused, limited, failed).", "method", "outcome"),
		rotations: counter(r, "authority_rotations_total",
			"Rotations of the certificate authority that were asked for, by outcome (done, refused, failed).", "outcome"),
		roots: gauge(r, "authority_roots", "Roots of the hub's own trust domain.").WithLabelValues(),
		signerEnds: gauge(r, "authority_signer_expiry_timestamp_seconds",
			"When the certificate of the signer ends; absent while the hub cannot sign."),
		rootEnds: gauge(r, "authority_root_expiry_timestamp_seconds",
			"When the root of the signer ends; absent while the hub cannot sign."),
		trouble: gauge(r, "authority_trouble", "1 when the authority's store, source or keys cannot be used.").WithLabelValues(),
	}
	zero(m.proofs, []string{"certificate", "token", "none"}, []string{"proven", "refused", "throttled", "unproven"})
	zero(m.certificates, []string{"csr", "sds"}, []string{"signed", "refused", "limited", "failed"})
	zero(m.rotations, []string{"done", "refused", "failed"})
	return m
}

// Proof counts a caller. Both are one of few fixed words.
func (m *Identity) Proof(method, outcome string) { m.proofs.WithLabelValues(method, outcome).Inc() }

// Certificate counts a certificate that was asked for. Both are one of few fixed words.
func (m *Identity) Certificate(method, outcome string) {
	m.certificates.WithLabelValues(method, outcome).Inc()
}

// Rotation counts a rotation that was asked for. The outcome is one of few fixed words.
func (m *Identity) Rotation(outcome string) { m.rotations.WithLabelValues(outcome).Inc() }

// Authority shows how the authority is.
func (m *Identity) Authority(now Authority) {
	m.roots.Set(float64(now.Roots))
	setExpiry(m.signerEnds, now.SignerEnds)
	setExpiry(m.rootEnds, now.RootEnds)
	m.trouble.Set(oneIf(now.Trouble))
}

// setExpiry shows when something ends. Without it there is no series: one of 0 would look like something that has expired.
func setExpiry(gauge *prometheus.GaugeVec, ends time.Time) {
	if ends.IsZero() {
		gauge.Reset()
		return
	}
	gauge.WithLabelValues().Set(float64(ends.Unix()))
}
