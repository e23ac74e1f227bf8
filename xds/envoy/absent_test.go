package envoy_test

import (
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"isthmus.dev/isthmus/xds/envoy"
)

// TestBY8ReferencesToWhatIsAbsent: an object that refers to what does not exist
// hurts only itself, and where the reference is about security nothing falls
// back to plain text.
func TestBY8ReferencesToWhatIsAbsent(t *testing.T) {
	w := twoShops().config(t, `kind: VirtualService
metadata: {name: v, namespace: shop}
spec:
  hosts: [web.shop.svc.cluster.local]
  http: [{route: [{destination: {host: absent.shop.svc.cluster.local}}]}]
---
kind: DestinationRule
metadata: {name: d, namespace: bank}
spec: {host: pay.bank.svc.cluster.local, trafficPolicy: {tls: {mode: MUTUAL, credentialName: absent}}}`)
	n := client(t)
	built := buildAll(t, n, w.snapshot)
	checkReferences(t, n, built)
	routes, _ := find[*routev3.RouteConfiguration](t, built[envoy.RouteType], "80")
	for _, host := range routes.GetVirtualHosts() {
		answer := host.GetRoutes()[0].GetDirectResponse().GetStatus()
		switch host.GetName() {
		case "web.shop.svc.cluster.local:80":
			if answer != 503 {
				t.Errorf("a route to an absent host answers %d", answer)
			}
		case "pay.bank.svc.cluster.local:80":
			if answer != 0 {
				t.Errorf("another host is hurt: %d", answer)
			}
		}
	}
	secured, reasons := find[*clusterv3.Cluster](t, built[envoy.ClusterType], "outbound|80||pay.bank.svc.cluster.local")
	if secured.GetType() != clusterv3.Cluster_STATIC || len(secured.GetLoadAssignment().GetEndpoints()) > 0 || len(reasons) == 0 {
		t.Errorf("TLS is asked for and cannot be had: %v, %v", secured, reasons)
	}
}
