package csr

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
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

// TestR12ARequestThatPanicsEndsAlone: a fault of the hub fails one request, and is counted and logged.
func TestR12ARequestThatPanicsEndsAlone(t *testing.T) {
	h := startHub(t, Limits{})
	text, _ := request(t)
	asked := &security.IstioCertificateRequest{Csr: text}
	h.poison(true)
	if _, err := h.create(caller{token: token("web"), cluster: "c1"}, asked); status.Code(err) != codes.Internal {
		t.Errorf("the request ends with %v, want Internal", err)
	}
	h.poison(false)
	if _, err := h.create(caller{token: token("web"), cluster: "c1"}, asked); err != nil {
		t.Errorf("the next request: %v", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := strings.Count(h.log.String(), "a request for a certificate panicked"); n != 1 || h.counted[Failed] != 1 || h.counted[Signed] != 1 {
		t.Errorf("the log has %d lines of the panic, the metrics count %v", n, h.counted)
	}
}
