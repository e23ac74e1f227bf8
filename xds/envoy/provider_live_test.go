package envoy_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	rpccodes "google.golang.org/grpc/codes"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
)

const providerRules = `kind: MeshSettings
metadata: {name: default}
spec:
  extensionProviders:
  - name: over-grpc
    envoyExtAuthzGrpc: {service: shop/authz.shop, port: 9000, timeout: 60s, statusOnError: "503", includeRequestBodyInCheck: {maxRequestBytes: 100, allowPartialMessage: true}}
  - name: over-http
    envoyExtAuthzHttp:
      service: authz.shop
      port: 8000
      timeout: 60s
      pathPrefix: /check
      includeRequestHeadersInCheck: [x-key, "x-many-*"]
      includeAdditionalHeadersInCheck: {x-fixed: "100%"}
      headersToUpstreamOnAllow: [x-said]
      headersToDownstreamOnAllow: [x-said]
      headersToDownstreamOnDeny: [x-why]
  - {name: down, envoyExtAuthzGrpc: {service: authz.shop, port: 9001, timeout: 60s, statusOnError: "503"}}
  - {name: open, envoyExtAuthzGrpc: {service: authz.shop, port: 9001, timeout: 60s, failOpen: true}}
  - {name: nowhere, envoyExtAuthzGrpc: {service: nowhere.shop, port: 9000, failOpen: true}}
---
kind: AuthorizationPolicy
metadata: {name: grpc, namespace: shop}
spec:
  action: CUSTOM
  provider: {name: over-grpc}
  selector: {matchLabels: {app: web}}
  rules:
  - {to: [{operation: {paths: [/grpc*], ports: ["8080"]}}]}
  - {to: [{operation: {ports: ["9001"]}}]}
---
kind: AuthorizationPolicy
metadata: {name: http, namespace: shop}
spec:
  action: CUSTOM
  provider: {name: over-http}
  selector: {matchLabels: {app: web}}
  rules: [{to: [{operation: {paths: [/http*]}}]}]
---
kind: AuthorizationPolicy
metadata: {name: down, namespace: shop}
spec: {action: CUSTOM, provider: {name: down}, selector: {matchLabels: {app: web}}, rules: [{to: [{operation: {paths: [/down], ports: ["8080"]}}]}]}
---
kind: AuthorizationPolicy
metadata: {name: open, namespace: shop}
spec: {action: CUSTOM, provider: {name: open}, selector: {matchLabels: {app: web}}, rules: [{to: [{operation: {paths: [/open], ports: ["8080"]}}]}]}
---
kind: AuthorizationPolicy
metadata: {name: never, namespace: shop}
spec: {action: DENY, selector: {matchLabels: {app: web}}, rules: [{to: [{operation: {paths: [/grpc-never], ports: ["8080"]}}]}]}
---
kind: AuthorizationPolicy
metadata: {name: nowhere, namespace: shop}
spec: {action: CUSTOM, provider: {name: nowhere}, selector: {matchLabels: {app: lost}}, rules: [{to: [{operation: {paths: [/asked]}}]}]}`

// decider allows what says please: a request by its header, a connection by its server's port.
type decider struct {
	authv3.UnimplementedAuthorizationServer
}

func (decider) Check(_ context.Context, r *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	request := r.GetAttributes().GetRequest().GetHttp()
	if request.GetHeaders()["x-key"] == "please" || request == nil &&
		r.GetAttributes().GetSource().GetAddress().GetSocketAddress().GetAddress() == "10.7.0.30" {
		return &authv3.CheckResponse{Status: &status.Status{Code: int32(rpccodes.OK)}}, nil
	}
	return &authv3.CheckResponse{
		Status: &status.Status{Code: int32(rpccodes.PermissionDenied)},
		HttpResponse: &authv3.CheckResponse_DeniedResponse{DeniedResponse: &authv3.DeniedHttpResponse{
			Status: &typev3.HttpStatus{Code: typev3.StatusCode_PaymentRequired}, Body: "body " + request.GetBody(),
			Headers: []*corev3.HeaderValueOption{{Header: &corev3.HeaderValue{Key: "x-why", Value: "grpc"}}},
		}},
	}, nil
}

func listenIn(t *testing.T, ns *testbed.Namespace, address string) net.Listener {
	t.Helper()
	l, err := ns.Listen(address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// startDeciders are real authorization servers, over gRPC and over HTTP.
func startDeciders(t *testing.T, ns *testbed.Namespace) {
	t.Helper()
	server := grpc.NewServer()
	authv3.RegisterAuthorizationServer(server, decider{})
	l := listenIn(t, ns, "0.0.0.0:9000")
	go server.Serve(l)
	t.Cleanup(server.Stop)
	web := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Said", r.Header.Get("X-Fixed")+r.Header.Get("X-Many-A")+r.Header.Get("X-Other"))
		w.Header().Set("X-Why", "http")
		w.Header().Set("X-Secret", "kept")
		if !strings.HasPrefix(r.URL.Path, "/check/http") || r.Header.Get("X-Key") != "please" {
			w.WriteHeader(http.StatusTeapot)
		}
	})}
	l = listenIn(t, ns, "0.0.0.0:8000")
	go web.Serve(l)
	t.Cleanup(func() { web.Close() })
}

// TestK24RealProxiesAskProviders: what a policy selects, a real server decides, over HTTP, over gRPC
// and for connections; other requests are not asked about. Where no server answers, requests are
// refused unless the provider fails open; where there is none, everything is.
func TestK24RealProxiesAskProviders(t *testing.T) {
	network, authority := testbed.NewNetwork(t, "pods", "10.7.0.0/24"), testbed.NewAuthority(t, "mesh")
	asked := &federation.Shard{Endpoints: []federation.Endpoint{{
		Address: at("10.7.0.40", 1).Address,
		Ports:   []federation.EndpointPort{{Name: "grpc", Number: 9000}, {Name: "down", Number: 9001}, {Name: "http", Number: 8000}},
	}}, Ports: []federation.Port{
		{Name: "grpc", Number: 9000, Protocol: federation.GRPC},
		{Name: "down", Number: 9001, Protocol: federation.GRPC},
		{Name: "http", Number: 8000, Protocol: federation.HTTP},
	}}
	lost := web(at("10.7.0.3", 8080))
	w := newFixture().attach("c1", "").say("c1", webKey, web(at("10.7.0.2", 8080))).say("c1", key("lost.shop"), lost).say("c1",
		key("authz.shop"), asked).config(t, providerRules)
	server, _ := proxied(t, network, authority, "10.7.0.2", "web", w.snapshot)
	testbed.StartEcho(t, testbed.EchoOptions{Name: "web", Namespace: server, HTTP: []int{8080}, TCP: []int{9001}})
	lostServer, _ := proxied(t, network, authority, "10.7.0.3", "lost", w.snapshot)
	testbed.StartEcho(t, testbed.EchoOptions{Name: "lost", Namespace: lostServer, HTTP: []int{8080}, TCP: []int{9001}})
	authz, _ := pod(t, network, "10.7.0.40", nil)
	startDeciders(t, authz)
	caller, _ := pod(t, network, "10.7.0.30", nil)
	other, _ := pod(t, network, "10.7.0.31", nil)
	for _, c := range []struct {
		at, path, key string
		want          int
		header        string // of the answer
	}{
		{"10.7.0.2", "/free", "", 200, ""},
		{"10.7.0.2", "/grpc/a", "please", 200, ""},
		{"10.7.0.2", "/grpc/a", "", 402, "grpc"},
		{"10.7.0.2", "/grpc-never", "please", 403, ""},
		{"10.7.0.2", "/http", "please", 200, ""},
		{"10.7.0.2", "/http", "", 418, "http"},
		{"10.7.0.2", "/down", "please", 503, ""},
		{"10.7.0.2", "/open", "", 200, ""},
		{"10.7.0.3", "/anything", "please", 403, ""},
	} {
		response := caller.Get(fmt.Sprintf("http://%s:8080%s", c.at, c.path), "X-Key", c.key, "X-Many-A", "-many", "X-Other", "no")
		if response.Status != c.want || response.Header.Get("X-Why") != c.header || response.Header.Get("X-Secret") != "" {
			t.Errorf("%s%s with the key %q is answered with %d and X-Why %q, want %d and %q", c.at, c.path, c.key, response.Status,
				response.Header.Get("X-Why"), c.want, c.header)
		}
		if said := response.Header.Get("X-Said"); c.path == "/http" && c.want == 200 && said != "100%-many" {
			t.Errorf("the server was told %q", said)
		}
	}
	if got := sayLine(t, caller, "10.7.0.2:9001"); got != "web hello\n" {
		t.Errorf("a connection that the server allows is answered with %q", got)
	}
	for from, address := range map[*testbed.Namespace]string{other: "10.7.0.2:9001", caller: "10.7.0.3:9001"} {
		if !refusedLine(t, from, address) {
			t.Errorf("the connection from %s to %s is served", from, address)
		}
	}
}

// TestK24GatewaysOfTheGatewayAPIHaveTheirPolicies: a policy that names a Gateway is for the proxies of
// that Gateway, and of its own namespace.
func TestK24GatewaysOfTheGatewayAPIHaveTheirPolicies(t *testing.T) {
	w := newFixture().attach("c1", "").config(t, `kind: Gateway
metadata: {name: front, namespace: edge}
spec:
  selector: {app: gw}
  servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]
---
kind: AuthorizationPolicy
metadata: {name: named, namespace: edge}
spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: other}, {group: gateway.networking.k8s.io, kind: Gateway, name: front}], action: DENY, rules: [{}]}
---
kind: AuthorizationPolicy
metadata: {name: of-root, namespace: istio-system}
spec: {targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: front}, action: DENY, rules: [{}]}
---
kind: AuthorizationPolicy
metadata: {name: of-service, namespace: edge}
spec: {targetRefs: [{kind: Service, name: front}], action: DENY, rules: [{}]}`)
	for name, want := range map[string]bool{"front": true, "back": false} {
		n := parse(t, "router~10.7.0.8~gw.edge~edge.svc.cluster.local", map[string]any{
			"CLUSTER_ID": "c1", "LABELS": map[string]any{"app": "gw", federation.GatewayLabel: name},
		})
		text := string(sidecarConfig(t, n, w.snapshot))
		if got := strings.Contains(text, "policy[named]"); got != want {
			t.Errorf("the proxies of %s have the policy: %t", name, got)
		}
		if strings.Contains(text, "policy[of-root]") || strings.Contains(text, "policy[of-service]") {
			t.Errorf("the proxies of %s have a policy of another namespace, or of a Service", name)
		}
	}
}
