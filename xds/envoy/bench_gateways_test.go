package envoy_test

import (
	"fmt"
	"strings"
	"testing"

	"isthmus.dev/isthmus/xds/envoy"
)

// manyGateways have a server of TLS and a VirtualService each.
func manyGateways(n int) string {
	var all strings.Builder
	for i := range n {
		fmt.Fprintf(&all, `---
kind: Gateway
metadata: {name: shop-%[1]d, namespace: edge}
spec:
  selector: {istio: ingress}
  servers:
  - {port: {number: 443, name: https, protocol: HTTPS}, hosts: [shop-%[1]d.example.com], tls: {mode: SIMPLE, credentialName: shop-%[1]d}}
---
kind: VirtualService
metadata: {name: shop-%[1]d, namespace: edge}
spec: {hosts: [shop-%[1]d.example.com], gateways: [shop-%[1]d], http: [{directResponse: {status: 200}}]}
`, i)
	}
	return all.String()
}

func BenchmarkGatewayRoutes(b *testing.B) {
	for _, n := range []int{100, 1000} {
		s := newFixture().attach("c1", "").config(b, manyGateways(n)).snapshot
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if got := len(build(b, envoy.RouteType, ingress(b, "10.7.0.8"), s)); got != n {
					b.Fatal(got)
				}
			}
		})
	}
}
