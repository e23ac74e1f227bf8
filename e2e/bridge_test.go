package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/bridge"
	"isthmus.dev/isthmus/deploy/testbed"
)

// TestBridge has three networks without a route to each other, and requests that
// cross between them, encrypted from sidecar to sidecar.
func TestBridge(t *testing.T) {
	w := bridge.Start(t, bridge.Options{Program: binary.Path(t), Told: func(step string) { t.Log(step) }})
	t.Run("no route leads from one network to another", func(t *testing.T) {
		for _, from := range w.Sites {
			for _, to := range w.Sites {
				if from.Workload.Addresses[0] == to.Workload.Addresses[0] {
					continue // whoever is at that address here, it is not the other one
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if _, err := from.Gateways[0].DialContext(ctx, "tcp", to.Workload.Addresses[0]+":8080"); err == nil {
					t.Errorf("%s reaches the workload of %s directly", from.Network, to.Network)
				}
			}
		}
	})
	t.Run("every caller reaches every network", func(t *testing.T) {
		const marker = "a-word-that-nobody-may-read"
		wires := map[string]*testbed.Wire{}
		for _, s := range w.Sites {
			wires[s.Network] = s.Gateways[0].Sniff()
			defer wires[s.Network].Close()
		}
		for _, from := range w.Sites {
			for _, to := range w.Sites {
				answer, err := from.Ask(bridge.HostOf(to.Cluster), "/"+marker)
				if err != nil {
					t.Errorf("%s to %s: %v", from.Cluster, to.Cluster, err)
					continue
				}
				if answer.Cluster != to.Cluster {
					t.Errorf("%s asks %s and %s answers", from.Cluster, to.Cluster, answer.Cluster)
				}
				if want := "spiffe://cluster.local/ns/shop/sa/caller"; !strings.Contains(answer.Caller, want) {
					t.Errorf("%s is told that the caller is %q, not %s", to.Cluster, answer.Caller, want)
				}
			}
		}
		for _, s := range w.Sites {
			if wires[s.Network].Saw(marker) {
				t.Errorf("the gateway of %s saw a request in plain text", s.Network)
			}
		}
	})
	t.Run("a service of all networks is answered by all", func(t *testing.T) {
		for _, from := range w.Sites {
			counts := map[string]int{}
			for range 60 {
				answer, err := from.Ask(bridge.Host, "/")
				if err != nil {
					t.Fatalf("%s: %v", from.Cluster, err)
				}
				counts[answer.Cluster]++
			}
			if len(counts) != len(w.Sites) {
				t.Errorf("%s is answered by %v", from.Cluster, counts)
			}
		}
	})
	t.Run("a network whose gateway is gone is left out", func(t *testing.T) {
		w.Site("c2").Gateways[0].Envoy.Kill()
		testbed.WaitFor(t, 30*time.Second, "answers of c1 and dc1 alone", func() error {
			return answeredInWorld(w.Site("c1"), 20, "c1", "dc1")
		})
	})
}

// answeredInWorld is an error unless the clusters answer n requests, and no other.
func answeredInWorld(from *bridge.Site, n int, clusters ...string) error {
	counts := map[string]int{}
	for range n {
		answer, err := from.Ask(bridge.Host, "/")
		if err != nil {
			return err
		}
		counts[answer.Cluster]++
	}
	for _, c := range clusters {
		if counts[c] == 0 {
			return fmt.Errorf("%s does not answer: %v", c, counts)
		}
	}
	if len(counts) != len(clusters) {
		return fmt.Errorf("answers are %v", counts)
	}
	return nil
}
