package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/bridge"
	"isthmus.dev/isthmus/deploy/testbed"
)

var (
	bridgeRequests  = flag.Int("requests", 1500, "how many requests a look at shares sends")
	bridgeRounds    = flag.Int("rounds", 1, "how many looks at shares there are, each with other pods and gateways")
	bridgeFrozen    = flag.Duration("frozen", 5*time.Second, "how long an API server is frozen under load")
	bridgeRotations = flag.Int("rotations", 2, "how often credentials are rotated under load")
	bridgeFlaps     = flag.Int("flaps", 4, "how often a link goes up and down, every 3 s")
)

// bridgeRules have every request make a connection of its own, so that each is one
// choice of the sidecar and one of the gateway.
const bridgeRules = `apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: web, namespace: shop}
spec:
  host: web.shop.svc.cluster.local
  trafficPolicy:
    connectionPool: {http: {maxRequestsPerConnection: 1}}
`

// TestBridge has three networks without a route to each other, whose proxies prove
// to the hub who they are, and requests that cross between them, encrypted from
// sidecar to sidecar.
func TestBridge(t *testing.T) {
	w := bridge.Start(t, bridge.Options{
		Program: binary.Path(t), Told: func(step string) { t.Log(step) },
		Shapes: map[string]bridge.Shape{"c1": {Pods: 4, Gateways: 2}, "c2": {Pods: 5, Gateways: 3}, "dc1": {Pods: 4, Gateways: 1}},
	})
	t.Cleanup(func() { noPanic(t, w.Hub.Hub) })
	w.Hub.Apply(t, bridgeRules)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *bridge.Topology)
	}{
		{"NoRouteLeadsFromOneNetworkToAnother", testNoRoute},
		{"EveryCallerReachesEveryNetwork", testCrossings},
		{"SharesAreThoseOfThePods", testShares},
		{"BadInputAtAGatewayReachesNobody", testBadCallers},
		{"FrozenAPIServerFailsNoRequest", testFrozenAPIServer},
		{"RotationsMissNoEndpoint", testRotations},
		{"F85DeadGatewaysGetNoNewRequests", testDeadGateways},
		{"F85FlappingLinkChangesLittle", testFlappingLink},
		{"F89LinkAndDataPathAreToldApart", testTwoKindsOfEvidence},
		{"F86AllGatewaysOfANetworkDown", testNoGatewayLeft},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, w) })
	}
}

func testNoRoute(t *testing.T, w *bridge.Topology) {
	for _, from := range w.Sites {
		for _, to := range w.Sites {
			at := to.Workload.Addresses[0]
			if from.Workload.Addresses[0] == at {
				continue // what is at that address here is not the other one
			}
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			if _, err := from.Router.DialContext(ctx, "tcp", at+":8080"); err == nil {
				t.Errorf("%s reaches the workload of %s directly", from.Network, to.Network)
			}
		}
	}
}

// testCrossings also checks which caller the workload sees: what the
// hub signed, for a key that it made for the caller alone.
func testCrossings(t *testing.T, w *bridge.Topology) {
	const marker = "a-word-that-nobody-may-read"
	wires := map[string]*testbed.Wire{}
	for _, s := range w.Sites {
		for _, g := range s.Gateways {
			wires[s.Network+" "+g.Outside] = g.Sniff()
		}
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
			if want := bridge.SPIFFE(from.Caller); answer.Identity() != want {
				t.Errorf("%s sees the caller %q, not %s", to.Cluster, answer.Caller, want)
			}
		}
	}
	for name, wire := range wires {
		if wire.Saw(marker) {
			t.Errorf("the gateway of %s saw a request in plain text", name)
		}
		wire.Close()
	}
}

func testFrozenAPIServer(t *testing.T, w *bridge.Topology) {
	frozen := w.Site("c2")
	frozen.Kube.Pause()
	defer frozen.Kube.Resume()
	load := startTraffic(w.Site("c1"), w.Site("c2"), w.Site("dc1"))
	wait(t.Context(), *bridgeFrozen)
	load.stop()
	frozen.Kube.Resume()
	load.wantNoFailure(t)
	if load.answers["c2"] == 0 {
		t.Error("the cluster of the frozen API server answered nothing")
	}
	t.Logf("the API server of c2 is frozen for %v: %s", *bridgeFrozen, load)
	testbed.WaitFor(t, patience, "c2 is READY", func() error { return inPhase(w, "c2", "READY") })
}

// testRotations also looks whether the sidecar's endpoints stay all the time.
func testRotations(t *testing.T, w *bridge.Topology) {
	s, from := w.Site("c2"), w.Site("c1")
	endpointsStay(t, w, from.Caller, func() {
		load := startTraffic(from, s)
		for i := range *bridgeRotations {
			before := said(w, "a registry was replaced")
			if err := w.Rotate(s); err != nil {
				t.Fatalf("rotation %d: %v", i, err)
			}
			testbed.WaitFor(t, patience, "the rotation", func() error {
				if said(w, "a registry was replaced") == before {
					return errors.New("no registry was replaced")
				}
				return nil
			})
		}
		load.stop()
		load.wantNoFailure(t)
		t.Logf("%d rotations: %s", *bridgeRotations, load)
	})
}

// said is how often the hub's log has the words.
func said(w *bridge.Topology, words string) int { return strings.Count(string(w.Hub.Output()), words) }

// endpointsStay wants all endpoints of the service to stay while something else happens. Where
// the machine stalls, the hub takes a gateway for dead until its next answer, and says so: then
// all of it is done again.
func endpointsStay(t *testing.T, w *bridge.Topology, p *bridge.Pod, during func()) {
	t.Helper()
	const tries = 5
	for range tries {
		verdicts, before, looks := said(w, "the verdict on a gateway changed"), endpointsOf(t, p, bridge.Host), startLooks(p, bridge.Host)
		during()
		looks.stop()
		var missed []string
		for address := range before {
			if n := looks.absent(address); n > 0 {
				missed = append(missed, fmt.Sprintf("%s in %d of %d looks", address, n, looks.count))
			}
		}
		if len(missed) == 0 {
			return
		}
		if said(w, "the verdict on a gateway changed") == verdicts {
			t.Errorf("missing were %q", missed)
			return
		}
		t.Logf("verdicts on gateways changed meanwhile; missing were %q", missed)
	}
	t.Errorf("verdicts on gateways changed in each of %d tries", tries)
}
