package consul

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestAProofUnderWayHoldsNobodyUp: while Consul does not answer, what was proven before can be
// read, and the next proof ends with its own context.
func TestAProofUnderWayHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	asked, answer := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		select {
		case asked <- struct{}{}:
		case <-q.Context().Done():
			return
		}
		select {
		case <-answer:
			fmt.Fprintf(w, instanceJSON, "consul", "consul", "10.0.0.100")
		case <-q.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	registry, err := New(Options{Cluster: "c1", Address: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { registry.client.http.CloseIdleConnections() })
	known := datacenterIdentity{datacenter: "dc1", servers: map[string]bool{"n-1": true, "n-2": true}}
	g, first := newGuard(registry.client, known), make(chan error, 1)
	go func() { first <- g.prove(t.Context(), false) }()
	<-asked
	if got := g.identity(); got.String() != known.String() || g.multiplexed() {
		t.Errorf("during a proof the identity is %s, over HTTP/2 %v", got, g.multiplexed())
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := g.prove(ended, false); !errors.Is(err, context.Canceled) {
		t.Errorf("a proof that waits for another one ends with %v, not with its context", err)
	}
	close(answer)
	if err := <-first; err != nil {
		t.Errorf("the proof before it failed: %v", err)
	}
	if got := g.identity().String(); got != "dc1/n-1" {
		t.Errorf("after the proof the identity is %s", got)
	}
}
