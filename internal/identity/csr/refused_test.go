package csr

import (
	"strings"
	"testing"

	security "istio.io/api/security/v1alpha1"
)

// TestR12RefusedRequestsDoNotFloodTheLog: a workload that proved who it is asks 200 times for what it may not have.
func TestR12RefusedRequestsDoNotFloodTheLog(t *testing.T) {
	h := startHub(t, Limits{})
	for range 200 {
		if _, err := h.create(caller{token: token("web"), cluster: "c1"}, &security.IstioCertificateRequest{Csr: "x"}); err == nil {
			t.Fatal("a request that is none is signed")
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := strings.Count(h.log.String(), "a certificate is not signed"); n < 1 || n > 20 || h.counted[Refused] != 200 {
		t.Errorf("the log has %d lines, the metrics count %d", n, h.counted[Refused])
	}
}
