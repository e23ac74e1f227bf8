package envoy_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
)

const claimRoutes = `kind: Gateway
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
  http:
  - {match: [{uri: {prefix: /echo}}], route: [{destination: {host: web.shop.svc.cluster.local}}]}
  - {match: [{headers: {"@request.auth.claims.groups": {exact: admin}}}], directResponse: {status: 211}}
  - {match: [{headers: {"@Request.Auth.Claims[realm][roles]": {exact: writer}}}], directResponse: {status: 212}}
  - {match: [{headers: {"@request.auth.claims.realm.tier": {prefix: gold}, "x-more": {exact: "1"}}}], directResponse: {status: 213}}
  - {match: [{uri: {prefix: /open}, withoutHeaders: {"@request.auth.claims.sub": {}}}], directResponse: {status: 214}}
  - {match: [{uri: {prefix: /others}, withoutHeaders: {"@request.auth.claims.sub": {exact: ann}}}], directResponse: {status: 215}}
  - {directResponse: {status: 200}}`

const claimTokens = `
---
kind: RequestAuthentication
metadata: {name: first, namespace: edge}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: front}]
  jwtRules:
  - {issuer: https://a.example, jwksUri: "https://a.example/keys", forwardOriginalToken: true}
  - {issuer: https://b.example, jwks: 'KEYS', outputClaimToHeaders: [{header: X-User, claim: sub}], outputPayloadToHeader: x-payload}`

// claimsFixture is a gateway that verifies tokens of two issuers, with a service behind it.
func claimsFixture(t *testing.T, a, b testbed.TokenIssuer) *fixture {
	w := newFixture().attach("c1", "").say("c1", webKey, web(at("10.7.0.2", 8080))).config(t,
		claimRoutes+strings.ReplaceAll(claimTokens, "KEYS", keysOf(b)))
	return w.apply(keys("https://a.example/keys", federation.KeySet{Keys: keysOf(a)}))
}

// keys are what the hub fetched from a URI.
func keys(uri string, set federation.KeySet) federation.Edit {
	return federation.Edit{KeySets: federation.Delta[federation.KeySource,
		federation.KeySet]{Set: map[federation.KeySource]federation.KeySet{{URI: uri}: set}}}
}

func frontOf(t *testing.T) envoy.Node {
	return parse(t, "router~10.7.0.8~gw.edge~edge.svc.cluster.local", map[string]any{
		"CLUSTER_ID": "c1", "LABELS": map[string]any{"istio": "ingress", federation.GatewayLabel: "front"},
	})
}

func claimsOf(iss, sub string, more map[string]any) map[string]any {
	all := map[string]any{"iss": iss, "sub": sub, "exp": time.Now().Add(time.Hour).Unix()}
	for name, value := range more {
		all[name] = value
	}
	return all
}

// TestK12GatewaysRouteByClaims: a real gateway chooses the route by what a verified token says, and by
// nothing that a caller can write. The RequestAuthentication names the gateway, one of the Gateway API (K14).
func TestK12GatewaysRouteByClaims(t *testing.T) {
	a, b := testbed.NewTokenIssuer(t), testbed.NewTokenIssuer(t)
	w := claimsFixture(t, a, b)
	network := testbed.NewNetwork(t, "pods", "10.7.0.0/24")
	server, _ := pod(t, network, "10.7.0.2", nil)
	testbed.StartEcho(t, testbed.EchoOptions{Name: "web", Namespace: server, HTTP: []int{8080}})
	ns := testbed.NewNamespace(t, "gateway")
	ns.Join(network, "10.7.0.8")
	testbed.StartEnvoy(t, testbed.EnvoyOptions{
		Name: "gateway", Config: sidecarConfig(t, frontOf(t), w.snapshot),
		Namespace: ns,
	}).WaitReady(time.Minute)
	caller, _ := pod(t, network, "10.7.0.30", nil)
	of := func(sub string, more map[string]any) string {
		return "Bearer " + a.Token(claimsOf("https://a.example", sub, more))
	}
	forged := "Bearer " + testbed.NewTokenIssuer(t).Token(claimsOf("https://a.example", "eve", map[string]any{"groups": "admin"}))
	for _, c := range []struct {
		name, path string
		headers    []string
		want       int
	}{
		{"no token", "/", nil, 200},
		{"a claim", "/", []string{"Authorization", of("ann", map[string]any{"groups": "admin"})}, 211},
		{"a list with the claim", "/", []string{"Authorization", of("ann", map[string]any{"groups": []string{"x", "admin"}})}, 211},
		{"another claim", "/", []string{"Authorization", of("ann", map[string]any{"groups": "admins"})}, 200},
		{"a nested claim", "/", []string{"Authorization", of("ann", map[string]any{"realm": map[string]any{"roles": []string{"writer"}}})}, 212},
		{
			"a prefix without the header", "/",
			[]string{"Authorization", of("ann", map[string]any{"realm": map[string]any{"tier": "gold-1"}})},
			200,
		},
		{"a prefix and the header", "/", []string{
			"Authorization", of("ann", map[string]any{"realm": map[string]any{"tier": "gold-1"}}),
			"X-More", "1",
		}, 213},
		{"a header of the claim's name", "/", []string{"Request.auth.claims.groups", "admin"}, 200},
		{"without any subject", "/open", nil, 214},
		{"with a subject", "/open", []string{"Authorization", of("ann", nil)}, 200},
		{"without that subject", "/others", []string{"Authorization", of("bob", nil)}, 215},
		{"with that subject", "/others", []string{"Authorization", of("ann", nil)}, 200},
		{"a forged token", "/", []string{"Authorization", forged}, 401},
		{"a token of the other issuer", "/", []string{
			"Authorization",
			"Bearer " + b.Token(claimsOf("https://b.example", "bob", map[string]any{"groups": "admin"})),
		}, 211},
	} {
		if got := statusOf(t, caller, "GET", "http://10.7.0.8"+c.path, c.headers...); got != c.want {
			t.Errorf("%s: answered with %d, want %d", c.name, got, c.want)
		}
	}
	claimHeaders(t, caller, a, b)
}

// claimHeaders looks at the headers that come out: callers cannot set those of claims, whichever token
// they have (K13).
func claimHeaders(t *testing.T, caller *testbed.Namespace, a, b testbed.TokenIssuer) {
	forged := []string{"X-User", "root", "x-payload", "e30"}
	ofA := "Bearer " + a.Token(claimsOf("https://a.example", "ann", nil))
	ofB := "Bearer " + b.Token(claimsOf("https://b.example", "bob", nil))
	for _, c := range []struct {
		name, method string
		headers      []string
		user, token  string
	}{
		{"no token", "GET", forged, "", ""},
		{"a token of another rule", "GET", append(slices.Clone(forged), "Authorization", ofA), "", ofA},
		{"a token of the rule", "GET", append(slices.Clone(forged), "Authorization", ofB), "bob", ""},
		{"preflight", "OPTIONS", append(slices.Clone(forged), "Origin", "https://x", "Access-Control-Request-Method", "GET"), "", ""},
	} {
		got := echoed(t, caller, c.method, "http://10.7.0.8/echo", c.headers...)
		if got.Get("X-User") != c.user || (got.Get("X-Payload") != "") != (c.user != "") || got.Get("X-Payload") == "e30" {
			t.Errorf("%s: the service gets the user %q and the payload %q, want %q", c.name, got["X-User"], got["X-Payload"], c.user)
		}
		if got.Get("Authorization") != c.token {
			t.Errorf("%s: the service gets the token %q, want %q", c.name, got.Get("Authorization"), c.token)
		}
	}
}

// echoed are the headers that an echo server gets.
func echoed(t *testing.T, from *testbed.Namespace, method, url string, headers ...string) http.Header {
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
		t.Fatal(err)
	}
	defer response.Body.Close()
	var answer testbed.EchoAnswer
	err = json.NewDecoder(response.Body).Decode(&answer)
	if err != nil {
		t.Fatalf("%s %s is answered with %d: %v", method, url, response.StatusCode, err)
	}
	return answer.Header
}

// TestK12WithoutAuthenticationClaimsMatchNothing: at a gateway that verifies no tokens, and at sidecars, a match
// of claims applies to no request, and the reason says so.
func TestK12WithoutAuthenticationClaimsMatchNothing(t *testing.T) {
	w := newFixture().attach("c1", "").config(t, claimRoutes)
	c, reasons := find[*routev3.RouteConfiguration](t, build(t, envoy.RouteType, frontOf(t), w.snapshot), "http.80")
	never := 0
	for _, r := range c.GetVirtualHosts()[0].GetRoutes() {
		headers := r.GetMatch().GetHeaders()
		if len(headers) == 1 && headers[0].GetInvertMatch() && headers[0].GetName() == ":method" {
			never++
		}
	}
	if never != 5 || !slices.ContainsFunc(reasons, func(r envoy.Reason) bool { return r.Code == "NO_TOKENS" }) {
		t.Errorf("%d routes apply to no request, want 5; the reasons are %v", never, reasons)
	}
}
