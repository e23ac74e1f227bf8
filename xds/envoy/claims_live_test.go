package envoy_test

import (
	"slices"
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/xds/envoy"
)

const claimRules = `kind: VirtualService
metadata: {name: web, namespace: shop}
spec:
  hosts: [web.shop.svc.cluster.local]
  http:
  - match: [{uri: {prefix: /only}, headers: {"@request.auth.claims.group": {exact: admin}}}]
    directResponse: {status: 418}
  - match: [{uri: {prefix: /only}, withoutHeaders: {"@request.auth.claims.group": {exact: admin}}}]
    directResponse: {status: 418}
  - match: [{uri: {prefix: /open}}]
    route: [{destination: {host: web.shop.svc.cluster.local}}]`

// Nobody verifies tokens: a match of claims applies to no request, with the claim or
// without, and the object says so.
func TestR29MatchesOfJWTClaimsNeverApply(t *testing.T) {
	network := testbed.NewNetwork(t, "pods", "10.7.0.0/24")
	server, _ := pod(t, network, "10.7.0.2", nil)
	testbed.StartEcho(t, testbed.EchoOptions{Name: "web", Namespace: server, HTTP: []int{8080}})
	shard := web(at("10.7.0.2", 8080))
	shard.VIPs = vips("10.96.0.1/32")
	w := newFixture().attach("c1", "").say("c1", webKey, shard).config(t, claimRules)
	caller, _ := pod(t, network, "10.7.0.9", w.snapshot)
	for path, want := range map[string]int{"/only": 404, "/open": 200} {
		if r := caller.Get("http://10.96.0.1" + path); r.Err != nil || r.Status != want {
			t.Errorf("%s is answered with %d %v, want %d", path, r.Status, r.Err, want)
		}
	}
	var paths []string
	for o := range w.snapshot.Objects().All() {
		for _, f := range envoy.NotHonoured(o) {
			paths = append(paths, f.Path)
		}
	}
	want := []string{"http[0].match[0].headers[@request.auth.claims.group]", "http[1].match[0].withoutHeaders[@request.auth.claims.group]"}
	if !slices.Equal(paths, want) {
		t.Errorf("reported as not supported are %q, want %q", paths, want)
	}
}

// TestR29AClaimDoesNotOpenTheService: a rule whose only route depends on a claim
// does not leave the service open, in whichever case of letters it names the claim.
func TestR29AClaimDoesNotOpenTheService(t *testing.T) {
	for name, rule := range map[string]string{
		"match": `match: [{headers: {"@request.auth.claims.group": {exact: admin}}}]
    route: [{destination: {host: web.shop.svc.cluster.local}}]`,
		"withoutHeaders, in capitals": `match: [{withoutHeaders: {"@Request.Auth.Claims[group]": {exact: admin}}}]
    directResponse: {status: 200}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture().attach("c1", "").say("c1", webKey, web(at("10.7.0.2", 8080))).config(t, `kind: VirtualService
metadata: {name: web, namespace: shop}
spec:
  hosts: [web.shop.svc.cluster.local]
  http:
  - `+rule)
			c, _ := find[*routev3.RouteConfiguration](t, build(t, envoy.RouteType, client(t), w.snapshot), "80")
			for _, route := range c.GetVirtualHosts()[0].GetRoutes() {
				if h := route.GetMatch().GetHeaders(); len(h) != 1 || !h[0].GetInvertMatch() || h[0].GetName() != ":method" {
					t.Errorf("a route takes requests: %v", route)
				}
			}
		})
	}
}
