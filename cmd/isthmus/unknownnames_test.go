package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"isthmus.dev/isthmus/xds/xdstest"
)

// unknownNameBytes is the cost of names without a resource that the hub reports.
func (p *secureProgram) unknownNameBytes(t *testing.T) int {
	t.Helper()
	_, metrics, err := p.health.get("/metrics")
	must(t, err)
	found := regexp.MustCompile(`(?m)^isthmus_xds_unknown_name_bytes (\S+)$`).FindStringSubmatch(metrics)
	if found == nil {
		t.Fatal("the metric is missing")
	}
	bytes, err := strconv.ParseFloat(found[1], 64)
	must(t, err)
	return int(bytes)
}

// endOf waits until the stream is over and returns why.
func (p *secureProgram) endOf(t *testing.T, c *xdstest.Client) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		if _, err := c.Receive(ctx); err != nil {
			return err
		}
	}
}

// TestR07UnknownNames: the holder of one certificate opens stream after stream and names resources that do not exist, as long as
// names may be. What it can make the hub keep is bounded for all of its streams together; another identity's streams go on.
func TestR07UnknownNames(t *testing.T) {
	const limit = 1 << 20
	p := startSecureProgram(t, "true", fmt.Sprintf("xds: {maxUnknownNameBytesPerIdentity: %d}\n", limit))
	honest := p.openNode(t, p.connectionOf(t, "127.0.0.1", "cart"), nodeOf("cart-1"), map[string]any{"SERVICE_ACCOUNT": "cart"})
	const cluster = "outbound|80||before.example"
	must(t, p.applyHost("before"))
	p.receives(t, honest, cluster)

	var streams []*xdstest.Client
	refused := 0
	for i := range 5 {
		attack := p.open(t, p.connection(t, "127.0.0.1"))
		p.receives(t, attack, cluster)
		streams = append(streams, attack)
		for _, kind := range []string{xdstest.EDS, xdstest.RDS, xdstest.LDS} {
			var names []string
			for n := range 100 {
				names = append(names, fmt.Sprintf("%d-%s-%d-%s", i, kind[len(kind)-10:], n, strings.Repeat("x", 480)))
			}
			_ = attack.Send(xdstest.Request{Type: kind, Names: names}) // a stream that is over says so below
			if _, err := attack.Receive(t.Context()); err == nil {
				continue
			}
			refused++
			if err := p.endOf(t, attack); status.Code(err) != codes.ResourceExhausted ||
				!strings.Contains(err.Error(), "xds.maxUnknownNameBytesPerIdentity") ||
				!strings.Contains(err.Error(), strconv.Itoa(limit)) {
				t.Errorf("stream %d ends with %v", i, err)
			}
			break
		}
		if n := p.unknownNameBytes(t); n > limit {
			t.Errorf("names without a resource cost %d bytes, the limit is %d", n, limit)
		}
	}
	if refused == 0 || refused == len(streams) {
		t.Errorf("%d of %d streams are refused", refused, len(streams))
	}
	must(t, p.applyHost("during"))
	p.receives(t, honest, "outbound|80||during.example")
	if n := strings.Count(p.log.String(), "closing an xDS stream"); n < 1 || n > 20 {
		t.Errorf("the log has %d lines about streams that were closed", n)
	}
	for _, c := range streams {
		c.Close()
	}
	p.await(t, "the names to be given back", func() error {
		if n := p.unknownNameBytes(t); n != 0 {
			return fmt.Errorf("%d bytes are left", n)
		}
		return nil
	})
}

// TestR07Variants: each DNS domain, network or locality that a node invents has the hub build most resources once more. One
// certificate buys a few of them.
func TestR07Variants(t *testing.T) {
	p := startSecureProgram(t, "true", "xds: {maxVariantsPerIdentity: 3}\n")
	must(t, p.applyHost("before"))
	const cluster = "outbound|80||before.example"
	honest := p.openNode(t, p.connectionOf(t, "127.0.0.1", "cart"), nodeOf("cart-1"), map[string]any{"SERVICE_ACCOUNT": "cart"})
	p.receives(t, honest, cluster)
	p.receives(t, p.open(t, p.connection(t, "127.0.0.1")), cluster)
	p.receives(t, p.open(t, p.connection(t, "127.0.0.1")), cluster) // the same variant
	invented := []struct {
		id       string
		metadata map[string]any
	}{
		{strings.Replace(nodeOf("web-1"), "svc.cluster.local", "svc.one.example", 1), map[string]any{}},
		{nodeOf("web-1"), map[string]any{"NETWORK": "n1"}},
		{nodeOf("web-1"), map[string]any{"NETWORK": "n2"}},
		{strings.Replace(nodeOf("web-1"), "svc.cluster.local", "svc.two.example", 1), map[string]any{}},
	}
	for i, node := range invented {
		node.metadata["SERVICE_ACCOUNT"] = "web"
		c := p.openNode(t, p.connection(t, "127.0.0.1"), node.id, node.metadata)
		if i < 2 {
			p.receives(t, c, cluster)
			continue
		}
		if err := p.endOf(t, c); status.Code(err) != codes.ResourceExhausted ||
			!strings.Contains(err.Error(), "the limit is 3 (xds.maxVariantsPerIdentity)") {
			t.Errorf("variant %d ends with %v", i, err)
		}
	}
	must(t, p.applyHost("during"))
	p.receives(t, honest, "outbound|80||during.example")
}
