package envoy_test

import (
	"fmt"
	"strings"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"isthmus.dev/isthmus/xds/envoy"
)

// TestK50WhatASidecarCannotHaveIsLeftOutAlone, and the proxies say why; the rest of the object takes effect.
func TestK50WhatASidecarCannotHaveIsLeftOutAlone(t *testing.T) {
	for name, c := range map[string]struct{ ingress, why string }{
		"no endpoint":           {`port: {number: 90}, defaultEndpoint: "8.8.8.8:53"`, "is not an endpoint of the workload"},
		"an empty socket":       {`port: {number: 90}, defaultEndpoint: "unix://"`, "is not an endpoint of the workload"},
		"a long socket":         {`port: {number: 90}, defaultEndpoint: "unix:///` + strings.Repeat("a", 120) + `"`, "longer than 107 bytes"},
		"the proxy's own port":  {`port: {number: 15021}, captureMode: NONE`, "has ports 15000 to 15099 itself"},
		"the port of redirects": {`port: {number: 15006}`, "has ports 15000 to 15099 itself"},
		"a circle":              {`port: {number: 90}, captureMode: NONE, bind: 127.0.0.1`, "to itself"},
		"a circle at all":       {`port: {number: 90}, captureMode: NONE, bind: 0.0.0.0, defaultEndpoint: "0.0.0.0:90"`, "to itself"},
		"no port":               {`port: {number: 70000}`, "has no port"},
		"an idle bind":          {`port: {number: 90}, bind: 10.0.0.1`, "has no bind"},
		"TLS beside the mesh's": {
			`port: {number: 90, protocol: TLS}, tls: {mode: SIMPLE, serverCertificate: /c, privateKey: /k}`,
			"tls has no effect",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture().attach("c1", "").config(t,
				fmt.Sprintf("kind: Sidecar\nmetadata: {name: s, namespace: shop}\nspec: {ingress: [{%s}, {port: {number: 80, protocol: HTTP}}]}",
					c.ingress))
			n := parse(t, "sidecar~10.0.0.1~web.shop~shop.svc.cluster.local", map[string]any{"CLUSTER_ID": "c1", "IDENTITY_SOURCE": "ads"})
			l, reasons := find[*listenerv3.Listener](t, build(t, envoy.ListenerType, n, w.snapshot), "virtualInbound")
			if len(reasons) != 1 || !strings.Contains(reasons[0].Message, c.why) || reasons[0].Cause.Name != "s" {
				t.Errorf("the proxy says %v, want %q", reasons, c.why)
			}
			has := false
			for _, chain := range l.GetFilterChains() {
				has = has || chain.GetFilterChainMatch().GetDestinationPort().GetValue() == 80
			}
			if !has {
				t.Error("the other port has no chain")
			}
		})
	}
}
