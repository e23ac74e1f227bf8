package csr

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	security "istio.io/api/security/v1alpha1"

	"isthmus.dev/isthmus/internal/identity/authority"
)

// provenBefore is a caller with a certificate of shop/web whose last proof by something else is so long ago. Another hub of the same
// store signed it, for which proofs count longer.
func (h *hub) provenBefore(age time.Duration) caller {
	h.t.Helper()
	private, key, err := authority.NewKey()
	if err != nil {
		h.t.Fatal(err)
	}
	web := authority.Workload{TrustDomain: "mesh.example", Namespace: "shop", ServiceAccount: "web"}
	lenient, err := authority.Open(h.t.Context(), authority.Options{
		TrustDomain: "mesh.example", Store: h.store, Keys: h.store, Policy: authority.Policy{Leaf: time.Hour, Proof: 1000 * time.Hour},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	leaf, err := lenient.Sign(authority.Order{Workload: web, Cluster: "c1", Key: private.Public(), Proven: time.Now().Add(-age)})
	if err != nil {
		h.t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(leaf.Chain, key)
	if err != nil {
		h.t.Fatal(err)
	}
	return caller{pair: &pair}
}

func (h *hub) lastProofOf(chain string) time.Time {
	h.t.Helper()
	block, _ := pem.Decode([]byte(chain))
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		h.t.Fatal(err)
	}
	proof, err := h.trust.Verify([]*x509.Certificate{leaf})
	if err != nil {
		h.t.Fatal(err)
	}
	return proof.Proven
}

// expiredToken says when it expired.
func expiredToken(at time.Time) string {
	part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	return part(`{"alg":"none"}`) + "." + part(fmt.Sprintf(`{"exp":%d}`, at.Unix())) + "." + part("x")
}

// TestR12ChainsOfRenewalsEnd: a certificate that was obtained with nothing but an earlier one does not renew forever. Each certificate carries the time of
// the last proof; a token, or a connection from the workload's known address, is a new proof.
func TestR12ChainsOfRenewalsEnd(t *testing.T) {
	h := startHub(t, Limits{}) // proofs count for 24 h
	csr, _ := request(t)
	ask := func(c caller) (time.Duration, error) {
		chain, err := h.create(c, &security.IstioCertificateRequest{Csr: csr})
		if err != nil {
			return 0, err
		}
		return time.Since(h.lastProofOf(chain[0])).Round(time.Minute), nil
	}
	if age, err := ask(h.provenBefore(20 * time.Hour)); err != nil || age != 20*time.Hour {
		t.Errorf("a renewal after 20 h: the last proof is %s ago, %v", age, err)
	}
	old := h.provenBefore(25 * time.Hour)
	_, err := ask(old)
	if status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "identity.maxProofAge") ||
		!strings.Contains(err.Error(), "token") {
		t.Errorf("a renewal after the end: %v", err)
	}
	late := old
	late.token, late.cluster = expiredToken(time.Date(2026, 11, 1, 10, 0, 0, 0, time.UTC)), "c1"
	if _, err := ask(late); status.Code(err) != codes.PermissionDenied ||
		!strings.Contains(err.Error(), "the token that it shows expired at 2026-11-01T10:00:00Z: replace the token") {
		t.Errorf("U40: a renewal after the end, with an expired token: %v", err)
	}
	h.accounts = []string{"shop/cart"}
	if _, err := ask(old); status.Code(err) != codes.PermissionDenied {
		t.Errorf("from the address of another workload: %v", err)
	}
	h.accounts = []string{"shop/web"}
	if age, err := ask(old); err != nil || age != 0 {
		t.Errorf("from the address of the workload: the last proof is %s ago, %v", age, err)
	}
	h.accounts = nil
	both := old
	both.token, both.cluster = token("web"), "c1"
	if age, err := ask(both); err != nil || age != 0 {
		t.Errorf("with a token: the last proof is %s ago, %v", age, err)
	}
}
