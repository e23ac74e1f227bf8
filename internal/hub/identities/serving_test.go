package identities

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"
)

// TestU54TheHubsOwnCertificateFollowsTheClock: the certificate is good enough for half of its time, not at all before or after,
// as when somebody sets the clock.
func TestU54TheHubsOwnCertificateFollowsTheClock(t *testing.T) {
	signed := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := &Serving{}
	s.current.Store(&tls.Certificate{Leaf: &x509.Certificate{NotBefore: signed, NotAfter: signed.Add(24 * time.Hour)}})
	for name, c := range map[string]struct{ now, pause time.Duration }{
		"new": {0, 12 * time.Hour}, "later": {5 * time.Hour, 7 * time.Hour}, "half of its time": {12 * time.Hour, 0},
		"a day later": {24 * time.Hour, -12 * time.Hour}, "before": {-time.Second, 0},
	} {
		if pause := s.pause(signed.Add(c.now)); pause != c.pause {
			t.Errorf("%s: it is good enough for %v, want %v", name, pause, c.pause)
		}
	}
}
