package e2e

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/bridge"
	"isthmus.dev/isthmus/deploy/testbed"
)

// fault is one way for a gateway to die, and back.
type fault struct {
	name         string
	bound        time.Duration // after which no new request goes to it
	begin, mend  func()
	gateway      *bridge.Gateway
	lastRequest  time.Duration // after the beginning
	leftEndpoint time.Duration
}

// testDeadGateways: no new request goes to a gateway that was killed after 3 s, to
// one behind a link that swallows everything, or that accepts connections and does
// not pass them on, after 6 s. The times are those of the defaults.
func testDeadGateways(t *testing.T, w *bridge.Topology) {
	from, dead := w.Site("c1"), w.Site("c2")
	g := dead.Gateways
	drop := []string{"OUTPUT", "-p", "tcp", "--sport", "15443", "-j", "DROP"}
	silent := testbed.StartProxyWith(t, testbed.ProxyOptions{
		Namespace: g[2].Namespace, Address: netip.IPv4Unspecified(), Port: 15444, Target: "127.0.0.1:9", TargetIn: g[2].Namespace,
	})
	silent.Blackhole()
	away := []string{"PREROUTING", "-p", "tcp", "--dport", "15443", "-j", "REDIRECT", "--to-ports", "15444"}
	for _, f := range []*fault{
		{name: "killed", bound: 3 * time.Second, gateway: g[0], begin: g[0].Envoy.Kill, mend: g[0].Envoy.Restart},
		{
			name: "behind a black hole", bound: 6 * time.Second, gateway: g[1],
			begin: func() { g[1].Exec(append([]string{"iptables", "-A"}, drop...)...) },
			mend:  func() { g[1].Exec(append([]string{"iptables", "-D"}, drop...)...) },
		},
		{
			name: "accepting and not passing on", bound: 6 * time.Second, gateway: g[2],
			begin: func() { g[2].Exec(append([]string{"iptables", "-t", "nat", "-A"}, away...)...) },
			mend:  func() { g[2].Exec(append([]string{"iptables", "-t", "nat", "-D"}, away...)...) },
		},
	} {
		suffer(t, from, f)
	}
}

// suffer counts the connections that requests make to the gateway from when it dies.
func suffer(t *testing.T, from *bridge.Site, f *fault) {
	t.Helper()
	requests := countEntries(f.gateway, from.Outside())
	load, seen := startSteadyTraffic(from), startLooks(from.Caller, bridge.Host)
	testbed.WaitFor(t, patience, "requests over "+f.gateway.Outside, func() error {
		if requests() < 5 {
			return errors.New("there are few")
		}
		return nil
	})
	clock := testbed.StartClock(t)
	f.begin()
	began, last := time.Now(), requests()
	enough := 0 // requests that must have ended
	testbed.WaitFor(t, patience, "60 requests after the bound", func() error {
		now := clock.Since(began)
		if n := requests(); n != last {
			last, f.lastRequest = n, now
		}
		if f.leftEndpoint == 0 && !seen.has(f.gateway.Entry()) {
			f.leftEndpoint = now
		}
		if now < f.bound && time.Since(began) < 2*f.bound { // a machine may be busy throughout
			return errors.New("it is not over")
		}
		if enough == 0 {
			enough = load.total() + 60
		}
		if n := load.total(); n < enough {
			return fmt.Errorf("%d of %d", n, enough)
		}
		return nil
	})
	load.stop()
	if f.lastRequest > f.bound || f.leftEndpoint == 0 {
		t.Errorf("a gateway %s: the last request goes to it after %v, more than %v", f.name, f.lastRequest, f.bound)
	}
	if after := clock.Between(began, load.lastFailed); after > f.bound {
		t.Errorf("a gateway %s: a request that was sent after %v failed: %v", f.name, after, load.first)
	}
	t.Logf("a gateway %s: out of EDS after %v, the last request to it after %v; %s", f.name,
		f.leftEndpoint.Round(10*time.Millisecond), f.lastRequest.Round(10*time.Millisecond), load)
	f.mend()
	mended := time.Now()
	testbed.WaitFor(t, patience, "the gateway to be back", func() error {
		if !seen.has(f.gateway.Entry()) {
			return errors.New("it is out of EDS")
		}
		return nil
	})
	seen.stop()
	t.Logf("it is back %v after it works again", time.Since(mended).Round(10*time.Millisecond))
}

// countEntries counts the connections that reach a gateway's machine with the
// requests of a site; probes have other addresses. One that is tried again for want
// of an answer is the same.
func countEntries(g *bridge.Gateway, from string) func() int {
	g.Exec("iptables", "-t", "mangle", "-A", "PREROUTING", "-p", "tcp", "--dport", "15443", "-s", from, "-m", "conntrack", "--ctstate", "NEW")
	return func() int {
		for line := range strings.Lines(g.Exec("iptables", "-t", "mangle", "-nvxL", "PREROUTING")) {
			if fields := strings.Fields(line); len(fields) > 0 && strings.Contains(line, from) {
				n, _ := strconv.Atoi(fields[0])
				return n
			}
		}
		return 0
	}
}

// testFlappingLink: a link that comes and goes makes at most two changes. A machine that stops
// leaves it as it is for longer, so that the changes are more: then it flaps again.
func testFlappingLink(t *testing.T, w *bridge.Topology) {
	const tries = 5
	for range tries {
		changes, inTime := flap(t, w)
		if inTime && changes > 2 {
			t.Errorf("a link that flaps %d times makes %d changes", *bridgeFlaps, changes)
		}
		if inTime || changes <= 2 {
			return
		}
	}
	t.Errorf("the machine stopped in each of %d tries", tries)
}

// flap counts the changes that a flapping link makes, and reports whether it flapped in time.
func flap(t *testing.T, w *bridge.Topology) (changes int, inTime bool) {
	t.Helper()
	const half, late = 1500 * time.Millisecond, 400 * time.Millisecond
	from, g := w.Site("dc1"), w.Site("c1").Gateways[1]
	seen, load := startLooks(from.Caller, bridge.Host), startTraffic(from)
	tick := time.NewTicker(half)
	defer tick.Stop()
	inTime = true
	for range *bridgeFlaps {
		for _, turn := range []func(*testbed.Network){g.Cut, g.Mend} {
			began := time.Now()
			turn(w.Wan)
			<-tick.C
			inTime = inTime && time.Since(began) < half+late
		}
	}
	testbed.WaitFor(t, patience, "the gateway to be back", func() error {
		if !seen.has(g.Entry()) {
			return errors.New("it is out of EDS")
		}
		return nil
	})
	load.stop()
	seen.stop()
	t.Logf("a link flaps %d times: %d changes; %s", *bridgeFlaps, seen.moves[g.Entry()], load)
	return seen.moves[g.Entry()], inTime
}

// testTwoKindsOfEvidence: gateways that do not reach each other say nothing of the
// hub's link to a cluster, and the other way round. Only the former takes endpoints.
func testTwoKindsOfEvidence(t *testing.T, w *bridge.Topology) {
	near, far, other := w.Site("c1"), w.Site("c2"), w.Site("dc1")
	g := far.Gateways[0]
	cut := []string{"INPUT", "-m", "iprange", "--src-range", "192.0.2.50-192.0.2.99", "-j", "DROP"}
	g.Exec(append([]string{"iptables", "-A"}, cut...)...)
	testbed.WaitFor(t, patience, "the partition to be seen from n1 alone", func() error {
		return errors.Join(gatewayState(w, "n1", g, "UNREACHABLE"), gatewayState(w, "n3", g, "REACHABLE"), inPhase(w, "c2", "READY"),
			offered(near.Caller, g, false), offered(other.Caller, g, true))
	})
	g.Exec(append([]string{"iptables", "-D"}, cut...)...)
	testbed.WaitFor(t, patience, "the partition to be over", func() error {
		return errors.Join(gatewayState(w, "n1", g, "REACHABLE"), offered(near.Caller, g, true))
	})

	endpointsStay(t, w, near.Caller, func() {
		load := startTraffic(near)
		far.Kube.Stop()
		testbed.WaitFor(t, patience, "c2 to be STALE, and its gateways to be reachable", func() error {
			return errors.Join(inPhase(w, "c2", "STALE"), gatewayState(w, "n1", g, "REACHABLE"), gatewayState(w, "n3", g, "REACHABLE"))
		})
		far.Kube.Restart()
		testbed.WaitFor(t, patience, "c2 to be READY", func() error { return inPhase(w, "c2", "READY") })
		load.stop()
		load.wantNoFailure(t)
		t.Logf("the link to c2 is lost and comes back: %s", load)
	})
}

// testNoGatewayLeft: the gateways of a network all die. They stay, are shown as what
// they are, and come behind all others: requests go to other networks.
func testNoGatewayLeft(t *testing.T, w *bridge.Topology) {
	near, dead := w.Site("c1"), w.Site("c2")
	looks := startLooks(near.Caller, bridge.HostOf("c2"))
	for _, g := range dead.Gateways {
		g.Envoy.Kill()
	}
	testbed.WaitFor(t, patience, "the gateways of n2 to be a last resort", func() error {
		var wrong []error
		for _, g := range dead.Gateways {
			wrong = append(wrong, gatewayState(w, "n1", g, "LAST_RESORT"), gatewayState(w, "n3", g, "LAST_RESORT"), offered(near.Caller, g, true))
		}
		return errors.Join(wrong...)
	})
	looks.stop()
	metrics, err := get(t.Context(), w.Hub.Plain, w.Hub.Health+"/metrics")
	for _, g := range dead.Gateways {
		if line := fmt.Sprintf("isthmus_gateway_reachable{gateway=%q,network=\"n2\",observer=\"n1\"} 0\n",
			g.Entry()); !strings.Contains(metrics, line) {
			t.Errorf("metrics lack %s, %v", line, err)
		}
	}
	if len(looks.now) == 0 || looks.count == 0 {
		t.Errorf("of %d looks the last has no endpoint for the service of n2 alone", looks.count)
	}
	testbed.WaitFor(t, patience, "answers of the other networks alone", func() error {
		return answeredInFixture(near, 40, "c1", "dc1")
	})
	for _, g := range dead.Gateways {
		g.Envoy.Restart()
	}
	testbed.WaitFor(t, patience, "answers of all networks", func() error {
		return answeredInFixture(near, 40, "c1", "c2", "dc1")
	})
}

func gatewayState(w *bridge.Topology, observer string, g *bridge.Gateway, want string) error {
	all, err := w.Hub.GatewayStates(observer)
	if err == nil && all[g.Entry()] != want {
		err = fmt.Errorf("to %s %s is %q, not %s", observer, g.Entry(), all[g.Entry()], want)
	}
	return err
}

func offered(p *bridge.Pod, g *bridge.Gateway, want bool) error {
	found, err := p.Endpoints(bridge.Host)
	if _, there := found[g.Entry()]; err == nil && there != want {
		err = fmt.Errorf("%s has %v", p.Namespace, found)
	}
	return err
}

// answeredInFixture is an error unless the clusters answer n requests, and no other.
func answeredInFixture(from *bridge.Site, n int, clusters ...string) error {
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
