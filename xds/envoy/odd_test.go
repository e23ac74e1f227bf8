package envoy_test

import (
	"strconv"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
)

// oddObjects are legal, and such as few people write.
var oddObjects = []string{
	`{kind: VirtualService, metadata: {name: v, namespace: shop}, spec: {hosts: [web.shop.svc.cluster.local], http: [{match: [{uri: {prefix: "/"}, headers: {":authority": {exact: a}, ":method": {regex: "GET|POST"}}}], route: [{destination: {host: web.shop.svc.cluster.local}}]}]}}`,
	`{kind: VirtualService, metadata: {name: v, namespace: shop}, spec: {hosts: [web.shop.svc.cluster.local], http: [{match: [{uri: {prefix: "/a/"}}], rewrite: {uri: "/"}, route: [{destination: {host: web.shop.svc.cluster.local}, weight: 0}, {destination: {host: web.shop.svc.cluster.local}, weight: 1}]}]}}`,
	`{kind: VirtualService, metadata: {name: v, namespace: shop}, spec: {hosts: [web.shop.svc.cluster.local], http: [{match: [{uri: {exact: "/a?b"}}, {uri: {regex: ""}}], directResponse: {status: 599}}]}}`,
	`{kind: VirtualService, metadata: {name: v, namespace: shop}, spec: {hosts: [web.shop.svc.cluster.local], http: [{timeout: 0s, retries: {attempts: 0}, route: [{destination: {host: web.shop.svc.cluster.local}}]}]}}`,
	`{kind: VirtualService, metadata: {name: v, namespace: shop}, spec: {hosts: [web.shop.svc.cluster.local], http: [{headers: {request: {set: {"x-a": "%%", "x-b": "%DOWNSTREAM_REMOTE_ADDRESS%"}, remove: [x-c, x-c]}}, route: [{destination: {host: web.shop.svc.cluster.local}}]}]}}`,
	`{kind: VirtualService, metadata: {name: v, namespace: shop}, spec: {hosts: [web.shop.svc.cluster.local, "*.Example.COM", "*"], http: [{route: [{destination: {host: web.shop.svc.cluster.local}}]}]}}`,
	`{kind: VirtualService, metadata: {name: v, namespace: shop}, spec: {hosts: [web.shop.svc.cluster.local], http: [{corsPolicy: {allowOrigins: [{regex: ".*"}, {prefix: "https://"}], maxAge: 0s}, route: [{destination: {host: web.shop.svc.cluster.local}}]}]}}`,
	`{kind: VirtualService, metadata: {name: v, namespace: shop}, spec: {hosts: [web.shop.svc.cluster.local], http: [{redirect: {uri: "/", derivePort: FROM_REQUEST_PORT, redirectCode: 308}}]}}`,
	`{kind: VirtualService, metadata: {name: v, namespace: shop}, spec: {hosts: [web.shop.svc.cluster.local], http: [{fault: {delay: {fixedDelay: 0.001s, percentage: {value: 0.0001}}, abort: {httpStatus: 200, percentage: {value: 100}}}, route: [{destination: {host: web.shop.svc.cluster.local}}]}]}}`,
	`{kind: DestinationRule, metadata: {name: d, namespace: shop}, spec: {host: web.shop.svc.cluster.local, subsets: [{name: v1, labels: {}}, {name: v2, labels: {none: such}}]}}`,
	`{kind: DestinationRule, metadata: {name: d, namespace: shop}, spec: {host: "*.shop.svc.cluster.local", trafficPolicy: {loadBalancer: {consistentHash: {httpCookie: {name: c, ttl: 0s}}}}}}`,
	`{kind: DestinationRule, metadata: {name: d, namespace: shop}, spec: {host: web.shop.svc.cluster.local, trafficPolicy: {connectionPool: {tcp: {maxConnections: 2147483647, connectTimeout: 0.001s}, http: {maxRequestsPerConnection: 1, idleTimeout: 0.001s}}, outlierDetection: {consecutive5xxErrors: 0, interval: 0.001s, baseEjectionTime: 0.001s, maxEjectionPercent: 0}}}}`,
	`{kind: DestinationRule, metadata: {name: d, namespace: shop}, spec: {host: web.shop.svc.cluster.local, trafficPolicy: {retryBudget: {percent: 30, budgetInterval: 315576000000s}}}}`,
	`{kind: DestinationRule, metadata: {name: d, namespace: shop}, spec: {host: web.shop.svc.cluster.local, trafficPolicy: {tls: {mode: SIMPLE, sni: "", subjectAltNames: [a, a]}}}}`,
	`{kind: Sidecar, metadata: {name: s, namespace: shop}, spec: {egress: [{port: {number: 80, name: http, protocol: HTTP}, bind: 127.0.0.1, hosts: ["*/*"]}, {hosts: ["./*"]}], outboundTrafficPolicy: {mode: REGISTRY_ONLY}}}`,
	`{kind: Sidecar, metadata: {name: s, namespace: shop}, spec: {egress: [{hosts: ["~/*"]}]}}`,
	`{kind: Sidecar, metadata: {name: s, namespace: shop}, spec: {egress: [{port: {number: 5432, name: tcp, protocol: TCP}, bind: "::1", hosts: ["*/*"]}]}}`,
}

// What is legal, however odd, Envoy accepts as a whole.
func TestR05EnvoyAcceptsOddObjects(t *testing.T) {
	for i, object := range oddObjects {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			db := tcp(5432, federation.TCP)
			db.VIPs, db.Endpoints = vips("192.0.2.1/32"), external(5432, federation.TCP, "10.0.1.1").Endpoints
			w := newFixture().attach("c1", "").say("c1", webKey, web(at("10.0.0.1", 8080))).say("c1", key("db.example.org"), db).config(t, object)
			if err := testbed.ValidateEnvoy(t, bootstrap(t, buildAll(t, client(t), w.snapshot))); err != nil {
				t.Errorf("%s: %v", object, err)
			}
		})
	}
}
