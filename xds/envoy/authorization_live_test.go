package envoy_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/transport"
)

const callRules = `kind: AuthorizationPolicy
metadata: {name: no-admin, namespace: istio-system}
spec:
  action: DENY
  rules: [{to: [{operation: {paths: [/admin, "/admin/{**}"], ports: ["8080"]}}]}]
---
kind: AuthorizationPolicy
metadata: {name: web, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  rules:
  - from: [{source: {principals: [cluster.local/ns/shop/sa/front]}}]
    to: [{operation: {methods: [GET], paths: [/public*, /admin, "/items/{*}/parts/{**}"], hosts: ["*.shop", 10.96.0.1]}}]
  - from: [{source: {namespaces: [shop], notPrincipals: ["*/sa/other"]}}]
    to: [{operation: {ports: ["9000"]}}]
  - from: [{source: {ipBlocks: [10.7.0.30], notNamespaces: ["*"]}}]
    when: [{key: "request.headers[x-key]", values: [let-*]}]
---
kind: AuthorizationPolicy
metadata: {name: tried, namespace: shop, annotations: {istio.io/dry-run: "true"}}
spec:
  action: DENY
  rules: [{to: [{operation: {paths: [/public-tried]}}]}]
---
kind: Gateway
metadata: {name: front, namespace: edge}
spec:
  selector: {istio: ingress}
  servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]
---
kind: VirtualService
metadata: {name: web, namespace: shop}
spec:
  hosts: ["*"]
  gateways: [edge/front]
  http: [{directResponse: {status: 200}}]
---
kind: AuthorizationPolicy
metadata: {name: front, namespace: edge}
spec:
  selector: {matchLabels: {istio: ingress}}
  rules: [{to: [{operation: {notPaths: [/hidden*]}}], from: [{source: {remoteIpBlocks: [10.7.0.30]}}]}]`

// proxied is a pod whose sidecar has an identity.
func proxied(t *testing.T, network *testbed.Network, authority *testbed.Authority, address, account string,
	s *federation.Snapshot,
) (*testbed.Namespace, *testbed.Envoy) {
	t.Helper()
	ns := testbed.NewNamespace(t, account)
	ns.Join(network, address)
	n := parse(t, "sidecar~"+address+"~"+account+".shop~shop.svc.cluster.local", map[string]any{
		"CLUSTER_ID": "c1", "IDENTITY_SOURCE": "ads", "LABELS": map[string]any{"app": account},
	})
	chain, key := authority.Issue(testbed.Subject{Hosts: []string{"spiffe://cluster.local/ns/shop/sa/" + account}})
	config := withSecrets(t, sidecarConfig(t, n, s), transport.KeyMaterial{
		Chain: chain, Key: key,
		Bundles: map[string][]byte{"cluster.local": authority.PEM},
	})
	proxy := testbed.StartEnvoy(t, testbed.EnvoyOptions{Name: "sidecar-" + account, Config: config, Namespace: ns})
	proxy.WaitReady(time.Minute)
	ns.Capture(testbed.ProxyUID)
	return ns, proxy
}

// statusOf is what a request is answered with.
func statusOf(t *testing.T, from *testbed.Namespace, method, url string, headers ...string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := from.Client(nil).Do(request)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	defer response.Body.Close()
	return response.StatusCode
}

// refusedLine reports whether a connection is closed when it says something.
func refusedLine(t *testing.T, from *testbed.Namespace, address string) bool {
	t.Helper()
	line, err := lineOf(t, from, address)
	return err != nil && line == ""
}

// TestK02RealProxiesAllowAndDeny: requests and connections pass as the policies say, by
// identity, address, path, method, host, header and port; where no policy of the workload
// allows anything, nothing passes.
func TestK02RealProxiesAllowAndDeny(t *testing.T) {
	network, authority := testbed.NewNetwork(t, "pods", "10.7.0.0/24"), testbed.NewAuthority(t, "mesh")
	endpoint := at("10.7.0.2", 8080)
	endpoint.TLSMode, endpoint.ServiceAccount = federation.MutualTLS, "shop/web"
	endpoint.Ports = append(endpoint.Ports, federation.EndpointPort{Name: "tcp", Number: 9000})
	shard := web(endpoint)
	shard.Ports = append(shard.Ports, federation.Port{Name: "tcp", Number: 90, Protocol: federation.TCP})
	shard.VIPs = vips("10.96.0.1/32")
	w := newFixture().attach("c1", "").say("c1", webKey, shard).config(t, callRules)
	server, sidecar := proxied(t, network, authority, "10.7.0.2", "web", w.snapshot)
	testbed.StartEcho(t, testbed.EchoOptions{Name: "web", Namespace: server, HTTP: []int{8080}, TCP: []int{9000, 9001}})
	front, _ := proxied(t, network, authority, "10.7.0.9", "front", w.snapshot)
	other, _ := proxied(t, network, authority, "10.7.0.10", "other", w.snapshot)
	plain, _ := pod(t, network, "10.7.0.30", nil)
	const vip, direct = "http://10.96.0.1", "http://10.7.0.2:8080"
	for _, c := range []struct {
		from        *testbed.Namespace
		method, url string
		headers     []string
		want        int
	}{
		{front, "GET", vip + "/public/a?b=/admin", nil, 200},
		{front, "GET", vip + "/items/7/parts/8/9", nil, 200},
		{front, "GET", vip + "/items/7/8/parts/9", nil, 403},
		{front, "POST", vip + "/public/a", nil, 403},
		{front, "GET", vip + "/private", nil, 403},
		{front, "GET", vip + "/admin", nil, 403}, // allowed and denied
		{front, "GET", vip + "/public/../admin", nil, 403},
		{front, "GET", vip + "/public-tried", nil, 200},
		{other, "GET", vip + "/public/a", nil, 403},
		{plain, "GET", direct + "/anything", []string{"X-Key", "let-me-in"}, 200},
		{plain, "GET", direct + "/anything", []string{"X-Key", "please"}, 403},
		{plain, "GET", direct + "/admin/users", []string{"X-Key", "let-me-in"}, 403},
		{plain, "GET", direct + "/public/a", nil, 403},
	} {
		if got := statusOf(t, c.from, c.method, c.url, c.headers...); got != c.want {
			t.Errorf("%s %s %v from %s is answered with %d, want %d", c.method, c.url, c.headers, c.from, got, c.want)
		}
	}
	if got := sayLine(t, front, "10.96.0.1:90"); got != "web hello\n" {
		t.Errorf("the TCP service answers %q to a caller that may", got)
	}
	for name, address := range map[string]string{"another port of the workload": "10.7.0.2:9001", "plain text": "10.7.0.2:9000"} {
		if !refusedLine(t, plain, address) {
			t.Errorf("%s: the connection is served", name)
		}
	}
	if !refusedLine(t, other, "10.96.0.1:90") {
		t.Error("a caller that is excepted by name is served")
	}
	stats, err := sidecar.Admin("/stats?filter=istio_dry_run_deny_.*shadow_denied")
	if err != nil || !regexp.MustCompile(`shadow_denied: 1\b`).Match(stats) {
		t.Errorf("what is tried out is counted as %q, %v", stats, err)
	}
}

// TestK02GatewaysAllowAndDeny by the address of the caller, whatever it says itself.
func TestK02GatewaysAllowAndDeny(t *testing.T) {
	network := testbed.NewNetwork(t, "pods", "10.7.0.0/24")
	w := newFixture().attach("c1", "").config(t, callRules)
	ns := testbed.NewNamespace(t, "gateway")
	ns.Join(network, "10.7.0.8")
	n := parse(t, "router~10.7.0.8~gw.edge~edge.svc.cluster.local",
		map[string]any{"CLUSTER_ID": "c1", "LABELS": map[string]any{"istio": "ingress"}})
	gateway := testbed.StartEnvoy(t, testbed.EnvoyOptions{Name: "gateway", Config: sidecarConfig(t, n, w.snapshot), Namespace: ns})
	gateway.WaitReady(time.Minute)
	known, _ := pod(t, network, "10.7.0.30", nil)
	stranger, _ := pod(t, network, "10.7.0.31", nil)
	for _, c := range []struct {
		from *testbed.Namespace
		path string
		want int
	}{{known, "/", 200}, {known, "/hidden/a", 403}, {stranger, "/", 403}} {
		if got := statusOf(t, c.from, "GET", "http://10.7.0.8"+c.path, "X-Forwarded-For", "10.7.0.30"); got != c.want {
			t.Errorf("%s from %s is answered with %d, want %d", c.path, c.from, got, c.want)
		}
	}
	if dump := string(gateway.ConfigDump()); !strings.Contains(dump, "ns[edge]-policy[front]-rule[0]") {
		t.Error("the gateway does not have the policy")
	}
}
