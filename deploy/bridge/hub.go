package bridge

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

// Hub is the hub's own program, which authenticates every caller.
type Hub struct {
	*testbed.Hub
	at *testbed.Namespace
}

// startHub runs the hub in the network between. It signs for the clusters; what
// runs in dc1 has certificates of an authority of its own besides.
func startHub(t testing.TB, w *Topology, program string) *Hub {
	t.Helper()
	h := &Hub{at: testbed.NewNamespace(t, "hub")}
	h.at.Join(w.Wan, "192.0.2.5")
	roots := filepath.Join(t.TempDir(), "machines.pem")
	if err := os.WriteFile(roots, w.machines.PEM, 0o600); err != nil {
		t.Fatal(err)
	}
	h.Hub = testbed.StartHub(t, testbed.HubOptions{Program: program, Namespace: h.at, Proven: true, Config: fmt.Sprintf(`
identity:
  bundles:
  - {trustDomain: cluster.local, file: %s, clusters: [dc1]}
`, roots)})
	return h
}

// Apply makes manifests part of the configuration, or ends the test.
func (h *Hub) Apply(t testing.TB, manifests string) {
	t.Helper()
	if err := h.change("apply", "ApplyInput", map[string]any{"manifests": []string{manifests}, "message": "bridge"}); err != nil {
		t.Fatalf("applying: %v", err)
	}
}

// change runs a mutation that answers what is wrong with its input.
func (h *Hub) change(mutation, input string, value map[string]any) error {
	var a map[string]struct{ UserErrors []struct{ Message string } }
	operation := fmt.Sprintf("mutation($i: %s!) { %s(input: $i) { userErrors { message } } }", input, mutation)
	if err := h.Query(operation, map[string]any{"i": value}, &a); err != nil {
		return err
	}
	if wrong := a[mutation].UserErrors; len(wrong) > 0 {
		return errors.New(wrong[0].Message)
	}
	return nil
}

// Phase is how the hub's link to a cluster is.
func (h *Hub) Phase(cluster string) (string, error) {
	var a struct {
		Cluster *struct{ Status struct{ Phase string } }
	}
	err := h.Query(`query($c: String!) { cluster(clusterID: $c) { status { phase } } }`, map[string]any{"c": cluster}, &a)
	if err != nil || a.Cluster == nil {
		return "", errors.Join(err, fmt.Errorf("there is no cluster %s", cluster))
	}
	return a.Cluster.Status.Phase, nil
}

// GatewayStates is what gateways are to the proxies of a network, by address and port.
func (h *Hub) GatewayStates(observer string) (map[string]string, error) {
	var a struct {
		Networks struct {
			Nodes []struct {
				Gateways []struct {
					Address string
					Health  []struct{ ObserverNetworkID, State string }
				}
			}
		}
	}
	if err := h.Query(`{ networks(first: 500) { nodes { gateways { address health { observerNetworkID state } } } } }`, nil, &a); err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, n := range a.Networks.Nodes {
		for _, g := range n.Gateways {
			for _, of := range g.Health {
				if of.ObserverNetworkID == observer {
					all[g.Address] = of.State
				}
			}
		}
	}
	return all, nil
}
