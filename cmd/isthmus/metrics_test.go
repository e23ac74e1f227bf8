package main

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"isthmus.dev/isthmus/xds/xdstest"
)

func TestMetricsCountWhatClientsDo(t *testing.T) {
	h := startHub(t)
	h.awaitPhase(t, "c1", "READY")
	h.awaitPhase(t, "c2", "READY") // what comes later is another push
	for _, query := range []string{"%7B__typename%7D", "%7Bnothing%7D"} {
		if _, _, err := h.get("/graphql?query=" + query); err != nil {
			t.Fatal(err)
		}
	}
	client, answer := h.openClusters(t, "sidecar~10.1.0.9~web-1.shop~shop.svc.cluster.local")
	var mu sync.Mutex
	pushes, size := 0, 0
	var taking sync.WaitGroup
	taking.Go(func() { // The mesh may change meanwhile: that is another push.
		for err := error(nil); err == nil; answer, err = client.Receive(t.Context()) {
			mu.Lock()
			pushes, size = pushes+1, size+answer.Size
			mu.Unlock()
			_ = client.Ack(answer) // a stream that is over says so next
		}
	})
	h.await(t, "the metrics to count what came", func() error {
		mu.Lock()
		defer mu.Unlock()
		return h.hasMetrics(
			`isthmus_graphql_requests_total{operation="query"}`, `isthmus_graphql_requests_total{operation="other"} 1`,
			`isthmus_graphql_errors_total{operation="other"} 1`,
			`isthmus_xds_streams{protocol="delta"} 1`, fmt.Sprintf(`isthmus_xds_pushes_total{type="CDS"} %d`, pushes),
			fmt.Sprintf(`isthmus_xds_sent_bytes_total{type="CDS"} %d`, size),
			fmt.Sprintf(`isthmus_xds_response_bytes_count{type="CDS"} %d`, pushes),
			fmt.Sprintf(`isthmus_xds_response_bytes_sum{type="CDS"} %d`, size),
			`isthmus_config_events_total{event="add",kind="Gateway"}`,
			fmt.Sprintf(`isthmus_xds_acks_total{type="CDS"} %d`, pushes), fmt.Sprintf(`isthmus_xds_ack_seconds_count{type="CDS"} %d`, pushes),
			`isthmus_xds_resources_built_total{type="CDS"}`,
		)
	})
	client.Close()
	taking.Wait()
	h.awaitMetrics(t, `isthmus_xds_streams{protocol="delta"} 0`)
}

// openClusters opens a delta stream of the node, and returns it with the first answer
// about clusters, which is not acknowledged yet.
func (h *hubUnderTest) openClusters(t *testing.T, node string) (*xdstest.Client, xdstest.Response) {
	t.Helper()
	conn, err := grpc.NewClient("unix:"+filepath.Join(h.dir, "xds"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	client, err := xdstest.Open(ctx, conn, xdstest.Options{Delta: true, Node: &corev3.Node{Id: node}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if err := client.Send(xdstest.Request{Type: xdstest.CDS, Names: []string{"*"}}); err != nil {
		t.Fatal(err)
	}
	answer, err := client.Receive(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return client, answer
}

// awaitMetrics polls until every line begins one of the page's.
func (h *hubUnderTest) awaitMetrics(t *testing.T, lines ...string) {
	t.Helper()
	h.await(t, "the metrics", func() error { return h.hasMetrics(lines...) })
}

func (h *hubUnderTest) hasMetrics(lines ...string) error {
	status, page, err := h.get("/metrics")
	if err != nil || status != http.StatusOK {
		return fmt.Errorf("status %d, %w", status, err)
	}
	for _, line := range lines {
		if !strings.Contains("\n"+page, "\n"+line) {
			return fmt.Errorf("no line %s", line)
		}
	}
	return nil
}
