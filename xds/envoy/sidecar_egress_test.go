package envoy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"isthmus.dev/isthmus/xds/envoy"
)

// TestK63EgressListenersThatCannotBeAreLeftOutAlone, and the proxies say why; the rest of the object takes effect.
func TestK63EgressListenersThatCannotBeAreLeftOutAlone(t *testing.T) {
	for name, c := range map[string]struct{ egress, ingress, why string }{
		"the proxy's own port":  {egress: "port: {number: 15021, protocol: HTTP}, captureMode: NONE", why: "has ports 15000 to 15099 itself"},
		"the HTTP proxy's port": {egress: "port: {number: 3128, protocol: HTTP_PROXY}, captureMode: NONE", why: "explicit HTTP proxy"},
		"no port":               {egress: "port: {number: 70000}, captureMode: NONE", why: "has no port"},
		"no address":            {egress: "port: {number: 90}, bind: nowhere", why: "is not an address"},
		"a zone":                {egress: `port: {number: 90}, bind: "fe80::1%eth0"`, why: "is not an address"},
		"an empty socket":       {egress: `port: {number: 0}, bind: "unix://"`, why: "is not a socket"},
		"a long socket":         {egress: `port: {number: 0}, bind: "unix:///` + strings.Repeat("a", 120) + `"`, why: "is not a socket"},
		"a captured socket":     {egress: `port: {number: 0}, bind: "unix:///a", captureMode: IPTABLES`, why: "cannot be captured"},
		"an ingress listener": {
			egress:  "port: {number: 90}, bind: 127.0.0.1, captureMode: NONE",
			ingress: "port: {number: 90}, bind: 127.0.0.1, captureMode: NONE, defaultEndpoint: '127.0.0.1:91'", why: "ingress listener",
		},
		"the workload's own port": {
			egress:  "port: {number: 90}, bind: 10.0.0.1, captureMode: NONE",
			ingress: "port: {number: 90}, captureMode: NONE", why: "ingress listener",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture().attach("c1", "").config(t, fmt.Sprintf(`kind: Sidecar
metadata: {name: s, namespace: shop}
spec: {ingress: [{%s}], egress: [{%s, hosts: ["./*"]}, {port: {number: 80, protocol: HTTP}, bind: 127.0.0.3, hosts: ["./*"]}]}`,
				c.ingress, c.egress))
			n := parse(t, "sidecar~10.0.0.1~web.shop~shop.svc.cluster.local", map[string]any{"CLUSTER_ID": "c1", "HTTP_PROXY_PORT": 3128})
			_, reasons := find[*listenerv3.Listener](t, build(t, envoy.ListenerType, n, w.snapshot), "virtualOutbound")
			found := slices.ContainsFunc(reasons, func(r envoy.Reason) bool { return strings.Contains(r.Message, c.why) && r.Cause.Name == "s" })
			if !found {
				t.Errorf("the proxy says %v, want %q", reasons, c.why)
			}
			find[*listenerv3.Listener](t, build(t, envoy.ListenerType, n, w.snapshot), "127.0.0.3_80")
		})
	}
}
