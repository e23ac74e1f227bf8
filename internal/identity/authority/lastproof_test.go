package authority

import (
	"crypto/x509"
	"errors"
	"testing"
	"time"
)

// TestR12LastProofOfCertificates: a certificate says when its owner last proved who it is. One of the hub's own signers that does
// not, of a hub before, counts from its beginning; one of another authority is a proof itself.
func TestR12LastProofOfCertificates(t *testing.T) {
	r := newRig(t, nil)
	trust, err := OpenTrust(TrustOptions{Authority: r.Authority})
	if err != nil {
		t.Fatal(err)
	}
	provenIn := func(leaf *x509.Certificate) time.Time {
		t.Helper()
		proof, err := trust.Verify([]*x509.Certificate{leaf})
		if err != nil {
			t.Fatal(err)
		}
		return proof.Proven
	}
	if at := provenIn(r.issue(Order{})); !at.Equal(r.now) {
		t.Errorf("a new proof is of %s, now it is %s", at, r.now)
	}
	before := r.now.Add(-3 * time.Hour)
	if at := provenIn(r.issue(Order{Proven: before})); !at.Equal(before) {
		t.Errorf("a proof of %s is reported as of %s", before, at)
	}
	if at := provenIn(r.issue(Order{Proven: r.now.Add(time.Hour)})); !at.Equal(r.now) {
		t.Errorf("a proof of the future is reported as of %s", at)
	}
	if _, err := r.Sign(Order{Workload: web, Key: newKey(t).Public(), Proven: r.now.Add(-25 * time.Hour)}); !errors.Is(err, ErrOldProof) {
		t.Errorf("an old proof: %v", err)
	}
	g, _ := r.Authority.now().current(r.now)
	unsaid := g.by(t, func(*x509.Certificate) {})[0]
	if at := lastProof(unsaid, true); !at.Equal(unsaid.NotBefore) {
		t.Errorf("a certificate that does not say so counts from %s, it began at %s", at, unsaid.NotBefore)
	}
	if at := lastProof(unsaid, false); !at.IsZero() {
		t.Errorf("a certificate of another authority counts from %s", at)
	}
	if said := r.issue(Order{Proven: before}); !lastProof(said, false).Equal(before) {
		t.Error("a hub of another store starts the chain again")
	}
}
