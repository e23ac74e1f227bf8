package envoy_test

import (
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"isthmus.dev/isthmus/xds/envoy"
)

// TestR27AnAddedHostReplacesTheRequests: a request has one host.
func TestR27AnAddedHostReplacesTheRequests(t *testing.T) {
	w := newFixture().attach("c1", "").say("c1", webKey, web(at("10.0.0.1", 8080))).config(t, `kind: VirtualService
metadata: {name: web, namespace: shop}
spec:
  hosts: [web.shop.svc.cluster.local]
  http: [{headers: {request: {add: {Host: other.example}}}, route: [{destination: {host: web.shop.svc.cluster.local}}]}]`)
	c, _ := find[*routev3.RouteConfiguration](t, build(t, envoy.RouteType, client(t), w.snapshot), "80")
	if route := c.GetVirtualHosts()[0].GetRoutes()[0]; route.GetRoute().GetHostRewriteLiteral() != "other.example" ||
		len(route.GetRequestHeadersToAdd()) > 0 {
		t.Errorf("the route is %v", route)
	}
}
