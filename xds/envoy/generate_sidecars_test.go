package envoy_test

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"
)

// drawSidecars adds an arbitrary Sidecar, odd values included.
func drawSidecars(t *rapid.T, w *fixture) {
	if !rapid.Bool().Draw(t, "sidecar") {
		return
	}
	pools := []string{
		"", "connectionPool: {}",
		"connectionPool: {tcp: {maxConnections: -1, connectTimeout: 0s, tcpKeepalive: {}, idleTimeout: 0s, maxConnectionDuration: 1s}}",
		"connectionPool: {tcp: {maxConnections: 3}, http: {maxRetries: -3, maxConcurrentStreams: 7, http2MaxRequests: -1, idleTimeout: 0s}}",
		"connectionPool: {http: {maxRequestsPerConnection: 2147483647, http2KeepAlive: {interval: 1s}}}",
	}
	var ingress []string
	for range rapid.IntRange(0, 3).Draw(t, "ingress") {
		ingress = append(ingress, "{"+joined([]string{
			rapid.SampledFrom([]string{
				"port: {number: 80, protocol: HTTP}", "port: {number: 8080, protocol: GRPC}", "port: {number: 443, protocol: HTTPS}",
				"port: {number: 8443, protocol: TLS}",
				"port: {number: 90}", "port: {number: 0}", "port: {number: 15006}", "port: {number: 70000}", "port: {number: 53, protocol: UDP}",
				"port: {number: 15021, protocol: TCP}",
			}).Draw(t, "port"),
			rapid.SampledFrom([]string{"", "", "bind: 0.0.0.0", `bind: "::"`, "bind: 10.0.0.1", "bind: nowhere"}).Draw(t, "bind"),
			rapid.SampledFrom([]string{"", "captureMode: NONE", "captureMode: IPTABLES"}).Draw(t, "capture"),
			rapid.SampledFrom([]string{
				"", `defaultEndpoint: "127.0.0.1:80"`, `defaultEndpoint: "[::1]:80"`, `defaultEndpoint: "0.0.0.0:80"`,
				`defaultEndpoint: "[::]:81"`, `defaultEndpoint: ":82"`,
				`defaultEndpoint: "unix:///a"`, `defaultEndpoint: "unix://@a"`, `defaultEndpoint: "unix://"`, `defaultEndpoint: "8.8.8.8:53"`,
				`defaultEndpoint: "127.0.0.1"`, `defaultEndpoint: "127.0.0.1:0"`,
				fmt.Sprintf(`defaultEndpoint: "unix:///%s"`, strings.Repeat("a", 200)),
			}).Draw(t, "endpoint"),
			rapid.SampledFrom([]string{
				"", "", "tls: {mode: SIMPLE, serverCertificate: /c, privateKey: /k}", "tls: {mode: MUTUAL, serverCertificate: /c, privateKey: /k}",
				"tls: {}", "tls: {mode: ISTIO_MUTUAL}",
				"tls: {mode: SIMPLE, serverCertificate: /c, privateKey: /k, minProtocolVersion: TLSV1_3, maxProtocolVersion: TLSV1_2}",
			}).Draw(t, "tls"),
			rapid.SampledFrom(pools).Draw(t, "pool"),
		})+"}")
	}
	spec := []string{"ingress: [" + strings.Join(ingress, ", ") + "]", "", ""}
	spec[2] = rapid.SampledFrom([]string{
		"", "", drawnEgress(t), `egress: [{hosts: ["./*"]}]`, `egress: [{port: {number: 80}, hosts: ["*/*"]}]`,
		`egress: [{port: {number: 443}, hosts: ["~./*"]}, {port: {number: 443}, hosts: ["shop/*"]}, {hosts: ["*/*"]}]`,
		`egress: [{port: {number: 15080, protocol: HTTP_PROXY}, hosts: ["*/*"]}, {port: {number: 99999}, hosts: ["shop/*", "~*/web.shop.svc.cluster.local"]}]`,
	}).Draw(t, "egress")
	if pool, is := strings.CutPrefix(rapid.SampledFrom(pools).Draw(t, "inbound pool"), "connectionPool"); is {
		spec[1] = "inboundConnectionPool" + pool
	}
	namespace := rapid.SampledFrom([]string{"shop", "other", "istio-system"}).Draw(t, "sidecar namespace")
	w.config(t, fmt.Sprintf("kind: Sidecar\nmetadata: {name: s, namespace: %s}\nspec: {%s}", namespace, joined(spec)))
	if rapid.Bool().Draw(t, "no mutual TLS") {
		w.config(t, fmt.Sprintf("kind: PeerAuthentication\nmetadata: {name: s, namespace: %s}\nspec: {mtls: {mode: DISABLE}}", namespace))
	}
}

// drawnEgress has listeners at addresses of their own, odd ones included.
func drawnEgress(t *rapid.T) string {
	var listeners []string
	for range rapid.IntRange(1, 4).Draw(t, "egress listeners") {
		listeners = append(listeners, "{"+joined([]string{
			rapid.SampledFrom([]string{
				"port: {number: 80, protocol: HTTP}", "port: {number: 80}", "port: {number: 443, protocol: TLS}", "port: {number: 90, protocol: TCP}",
				"port: {number: 0, protocol: HTTP}",
				"port: {number: 0, protocol: TCP}", "port: {number: 15001, protocol: HTTP}", "port: {number: 15080, protocol: HTTP_PROXY}",
				"port: {number: 3128, protocol: HTTP_PROXY}", "port: {number: 70000}", "",
			}).Draw(t, "egress port"),
			rapid.SampledFrom([]string{
				"", "bind: 127.0.0.1", "bind: 0.0.0.0", `bind: "::"`, `bind: "::1"`, `bind: "fe80::1%eth0"`, "bind: 10.96.0.1", "bind: nowhere",
				"bind: unix:///a", `bind: "unix://@a"`, "bind: unix://", "bind: unix:a",
				"bind: unix:///" + strings.Repeat("a", 200),
			}).Draw(t, "egress bind"),
			rapid.SampledFrom([]string{"", "captureMode: NONE", "captureMode: IPTABLES"}).Draw(t, "egress capture"),
			rapid.SampledFrom([]string{`hosts: ["./*"]`, `hosts: ["*/*"]`, `hosts: ["~*/*"]`, `hosts: ["*/web.shop.svc.cluster.local"]`, `hosts: ["other/*", "*/*.example.com"]`}).Draw(t,
				"egress hosts"),
		})+"}")
	}
	return "egress: [" + strings.Join(listeners, ", ") + "]" + rapid.SampledFrom([]string{
		"", ", outboundTrafficPolicy: {mode: ALLOW_ANY, egressProxy: {host: web, port: {number: 80}}}",
		", outboundTrafficPolicy: {mode: ALLOW_ANY, egressProxy: {host: a.b, subset: v1, port: {number: 70000}}}",
		", outboundTrafficPolicy: {mode: ALLOW_ANY, egressProxy: {}}",
	}).Draw(t, "egress proxy")
}
