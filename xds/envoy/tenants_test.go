package envoy_test

import (
	"fmt"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"isthmus.dev/isthmus/xds/envoy"
)

// TestR05LargeRings: every proxy that sees the service makes the ring whenever an endpoint changes, and takes no
// configuration meanwhile.
func TestR05LargeRings(t *testing.T) {
	for size, want := range map[uint64]uint64{1024: 1024, 65536: 65536, 65537: 65536, 8 << 20: 65536} {
		w := newFixture().attach("c1", "").say("c1", webKey, httpOn(80)).config(t, fmt.Sprintf(`
kind: DestinationRule
metadata: {name: web, namespace: shop}
spec: {host: web.shop.svc.cluster.local, trafficPolicy: {loadBalancer: {consistentHash: {useSourceIp: true, ringHash: {minimumRingSize: %d}}}}}`, size))
		c, reasons := find[*clusterv3.Cluster](t, build(t, envoy.ClusterType, client(t), w.snapshot), webCluster)
		if got := c.GetRingHashLbConfig().GetMinimumRingSize().GetValue(); got != want {
			t.Errorf("a ring of %d places has %d, want %d", size, got, want)
		}
		if isCut := size != want; isCut != (len(reasons) == 1 && strings.Contains(reasons[0].Message, "at most 65536")) {
			t.Errorf("a ring of %d places has the reasons %v", size, reasons)
		}
	}
}

// TestR05CommandsOfHeaders: what Envoy refuses as a command is meant as it is written. One refused command keeps all
// routes of a port from changing.
func TestR05CommandsOfHeaders(t *testing.T) {
	for value, want := range map[string]string{
		"%REQ(a)%": "%REQ(a)%", "%REQ(:path)%": "%REQ(:path)%", "%REQ(a?:b)%": "%REQ(a?:b)%", "%REQ(a?b?c)%": "%%REQ(a?b?c)%%",
		"%RESP(?b)%": "%%RESP(?b)%%",
	} {
		w := newFixture().attach("c1", "").say("c1", webKey, httpOn(80)).config(t, fmt.Sprintf(`
kind: VirtualService
metadata: {name: web, namespace: shop}
spec: {hosts: [web.shop.svc.cluster.local], http: [{headers: {request: {set: {x-a: "%s"}}}, route: [{destination: {host: web.shop.svc.cluster.local}}]}]}`, value))
		c, _ := find[*routev3.RouteConfiguration](t, build(t, envoy.RouteType, client(t), w.snapshot), "80")
		if text := c.String(); !strings.Contains(text, fmt.Sprintf("value:%q", want)) {
			t.Errorf("%s becomes %s", value, text)
		}
	}
}
