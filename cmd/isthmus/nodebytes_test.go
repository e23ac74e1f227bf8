package main

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"isthmus.dev/isthmus/xds/xdstest"
)

// TestR07NodesOfAnIdentity: the streams of a caller say different things of their nodes, 60 KB of labels each. What the hub
// keeps of them is bounded for the identity; streams that are open go on, callers with another identity are served, and
// what a stream took is free when it ends.
func TestR07NodesOfAnIdentity(t *testing.T) {
	p := startSecureProgram(t, "true", "xds: {maxNodeBytesPerIdentity: 1000000}\n")
	conn := p.connectionOf(t, "127.0.0.1", "thief")
	open := func(n int) *xdstest.Client {
		labels := map[string]any{}
		for key := range 100 {
			labels[fmt.Sprint("l", key)] = strings.Repeat(fmt.Sprint(n%10), 600)
		}
		return p.openNode(t, conn, nodeOf("thief-1"), map[string]any{"SERVICE_ACCOUNT": "thief", "LABELS": labels})
	}
	const most = 13 // of 73 KB each
	var streams []*xdstest.Client
	for n := range most {
		c := open(n)
		if _, err := c.Receive(t.Context()); err != nil {
			t.Fatalf("stream %d: %v", n, err)
		}
		streams = append(streams, c)
	}
	if err := p.endOf(t, open(0)); status.Code(err) != codes.ResourceExhausted ||
		!strings.Contains(err.Error(), "more than 1000000, the limit (xds.maxNodeBytesPerIdentity)") {
		t.Errorf("one too many: %v", err)
	}
	must(t, p.applyHost("during"))
	p.receives(t, streams[0], "outbound|80||during.example")
	p.receives(t, p.open(t, p.connection(t, "127.0.0.1")), "outbound|80||during.example")
	streams[1].Close()
	p.await(t, "room for another stream", func() error {
		c := open(1)
		_, err := c.Receive(t.Context())
		return err
	})
}
