package e2e

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

// callersHash is that of the certificate that a caller showed.
var callersHash = regexp.MustCompile(`Hash=([0-9a-f]+);.*URI=spiffe://cluster.local/ns/shop/sa/client`)

// calls is what the requests of one pod to another saw, one after the other.
type calls struct {
	mu     sync.Mutex
	failed []string
	hashes []string // of the certificates of the caller, in the order of their first use
	route  string   // that the last one took
}

// keepsCalling sends requests until the end of the test, or until it is told to end.
func (p *agentPod) keepsCalling(t *testing.T) (seen *calls, end func()) {
	seen = &calls{}
	ended := make(chan struct{})
	var calling sync.WaitGroup
	calling.Go(func() {
		for {
			select {
			case <-ended:
				return
			default:
			}
			answer := p.Get("http://10.96.0.10:8080/", "Host", webHost+":8080")
			seen.mu.Lock()
			if answer.Err != nil || answer.Status != 200 {
				seen.failed = append(seen.failed, fmt.Sprintf("%d %v", answer.Status, answer.Err))
			} else {
				echo := answer.Echo(t)
				seen.route = echo.Header.Get("X-Route")
				found := callersHash.FindStringSubmatch(echo.Header.Get("X-Forwarded-Client-Cert"))
				if found == nil {
					seen.failed = append(seen.failed, "without mutual TLS")
				} else if !slices.Contains(seen.hashes, found[1]) {
					seen.hashes = append(seen.hashes, found[1])
				}
			}
			seen.mu.Unlock()
		}
	})
	return seen, sync.OnceFunc(func() {
		close(ended)
		calling.Wait()
	})
}

// until waits for what the requests see.
func (c *calls) until(t *testing.T, what string, is func() error) {
	t.Helper()
	testbed.WaitFor(t, patience, what, func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		return is()
	})
}

// TestU66ASecondHubTakesOverAgents has two hubs over one store behind one address, as a load balancer has it. The first is killed.
// Istio's agents, unmodified, connect to the second: it renews their certificates, its changes reach them, and no request fails.
func TestU66ASecondHubTakesOverAgents(t *testing.T) {
	t.Parallel()
	w := newAgentCluster(t)
	store := testbed.StartEtcd(t, testbed.EtcdOptions{Name: "store", Namespace: w.at, Address: netip.MustParseAddr("127.0.0.1")})
	config := fmt.Sprintf("etcd: {endpoints: [%q]}\nsealKey: %s\nidentity: {certificateTTL: 5m}\n",
		store.URL, filepath.Join(t.TempDir(), "seal.key"))
	w.hub = w.startHub(config)
	second := w.startHub(config)
	first := testbed.StartProxyWith(t, testbed.ProxyOptions{Namespace: w.at, Target: w.hub.XDS, TargetIn: w.at})
	throughTheBalancer := func(o *testbed.AgentOptions) {
		o.Hub, o.Roots = first.Addr(), slices.Concat(w.hub.CA, second.CA)
		o.Env = append(o.Env, "SECRET_GRACE_PERIOD_RATIO=0.95", "SECRET_GRACE_PERIOD_RATIO_JITTER=0") // a new certificate after 15 s
	}
	server, client := w.pod("server", throughTheBalancer), w.pod("client", throughTheBalancer)
	testbed.StartEcho(t, testbed.EchoOptions{Name: "server", Namespace: server.Namespace, HTTP: []int{8080}})
	for _, p := range []*agentPod{server, client} {
		p.agent.WaitReady(patience)
	}
	awaitCall(t, client, "10.96.0.10", "web", "client")
	seen, end := client.keepsCalling(t)
	defer end()

	w.hub.Kill()
	first.Refuse()
	first.Reset()
	testbed.StartProxyWith(t, testbed.ProxyOptions{Namespace: w.at, Port: portOf(t, first.Addr()), Target: second.XDS, TargetIn: w.at})
	seen.mu.Lock()
	before := len(seen.hashes)
	seen.mu.Unlock()
	h := &hub{Hub: second}
	h.awaitProxies(t, "client", "server")
	h.change(t, "apply", map[string]any{"manifests": []string{`
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: shop}
spec:
  hosts: [web.shop.svc.cluster.local]
  http: [{headers: {request: {set: {x-route: of-the-second}}}, route: [{destination: {host: web.shop.svc.cluster.local}}]}]
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: web, namespace: shop}
spec:
  host: web.shop.svc.cluster.local
  trafficPolicy: {connectionPool: {http: {maxRequestsPerConnection: 1}}} # the newest certificate is shown
`}})
	seen.until(t, "the change of the second hub", func() error {
		if seen.route != "of-the-second" {
			return fmt.Errorf("the route is %q", seen.route)
		}
		return nil
	})
	seen.until(t, "two new certificates", func() error {
		if len(seen.hashes) < before+2 {
			return fmt.Errorf("of %d certificates, %d were there before", len(seen.hashes), before)
		}
		return nil
	})
	end()
	if len(seen.failed) > 0 {
		t.Errorf("%d requests failed, first: %s", len(seen.failed), seen.failed[0])
	}
	noPanic(t, w.hub)
	noPanic(t, second)
}

func portOf(t *testing.T, address string) int {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	return number
}

// awaitProxies waits until the proxies of these pods are connected to the hub and accepted what it sent.
func (h *hub) awaitProxies(t *testing.T, names ...string) {
	t.Helper()
	testbed.WaitFor(t, patience, "proxies at the hub", func() error {
		var a struct {
			Proxies struct {
				Nodes []struct{ NodeID, SyncState string }
			}
		}
		if err := h.query("{ proxies(first: 20) { nodes { nodeID syncState } } }", &a); err != nil {
			return err
		}
		for _, name := range names {
			if !slices.ContainsFunc(a.Proxies.Nodes, func(p struct{ NodeID, SyncState string }) bool {
				return strings.Contains(p.NodeID, "~"+name+".shop~") && p.SyncState == "SYNCED"
			}) {
				return fmt.Errorf("%s is not in sync: %+v", name, a.Proxies.Nodes)
			}
		}
		return nil
	})
}
