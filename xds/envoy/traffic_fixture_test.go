package envoy_test

import (
	"fmt"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
)

// trafficRules are about one service for each thing that happens to its requests.
const trafficRules = `kind: VirtualService
metadata: {name: delegating, namespace: shop}
spec:
  hosts: [delegating.shop]
  http:
  - {match: [{uri: {prefix: /team}}], delegate: {name: team, namespace: other}}
  - {directResponse: {status: 418}}
---
kind: VirtualService
metadata: {name: team, namespace: other}
spec:
  http:
  - {match: [{uri: {prefix: /team/b}}], rewrite: {uri: /of-b}, route: [{destination: {host: b.shop}}]}
  - {match: [{uri: {prefix: /elsewhere}}], directResponse: {status: 299}}
  - {route: [{destination: {host: a.shop}}]}
---
kind: VirtualService
metadata: {name: mirrored, namespace: shop}
spec:
  hosts: [mirrored.shop]
  http:
  - route: [{destination: {host: a.shop}}]
    mirrors:
    - {destination: {host: copied.shop, port: {number: 80}}}
    - {destination: {host: copied.shop, port: {number: 81}}, percentage: {value: 100}}
    - {destination: {host: copied.shop, port: {number: 82}}, percentage: {value: 0}}
---
kind: VirtualService
metadata: {name: budget, namespace: shop}
spec: {hosts: [budget.shop], http: [{retries: {attempts: 1, retryOn: 5xx}, route: [{destination: {host: budget.shop}}]}]}
---
kind: DestinationRule
metadata: {name: budget, namespace: shop}
spec: {host: budget.shop, trafficPolicy: {retryBudget: {percent: 0, minRetryConcurrency: 1}}}
---
kind: DestinationRule
metadata: {name: mute, namespace: shop}
spec: {host: mute.shop, trafficPolicy: {connectionPool: {http: {http2KeepAlive: {interval: 0.1s, timeout: 0.1s}}}}}
---
kind: DestinationRule
metadata: {name: cookie, namespace: shop}
spec: {host: cookie.shop, trafficPolicy: {loadBalancer: {consistentHash: {httpCookie: {name: place, path: /shop, ttl: 90s, attributes: [{name: SameSite, value: Strict}]}}}}}
---
kind: DestinationRule
metadata: {name: source, namespace: shop}
spec: {host: source.shop, trafficPolicy: {loadBalancer: {consistentHash: {useSourceIp: true}}}}
---
kind: DestinationRule
metadata: {name: query, namespace: shop}
spec: {host: query.shop, trafficPolicy: {loadBalancer: {consistentHash: {httpQueryParameterName: user}}}}
---
kind: DestinationRule
metadata: {name: maglev, namespace: shop}
spec: {host: maglev.shop, trafficPolicy: {loadBalancer: {consistentHash: {httpQueryParameterName: user, maglev: {tableSize: 251}}}}}
---
kind: DestinationRule
metadata: {name: ring, namespace: shop}
spec: {host: ring.shop, trafficPolicy: {loadBalancer: {consistentHash: {httpQueryParameterName: user, ringHash: {minimumRingSize: 64}}}}}
---
kind: VirtualService
metadata: {name: split, namespace: shop}
spec:
  hosts: [split.shop]
  http: [{retries: {attempts: 0}, route: [{destination: {host: split.shop, subset: east}, weight: 70}, {destination: {host: split.shop, subset: west}, weight: 30}]}]
---
kind: DestinationRule
metadata: {name: split, namespace: shop}
spec:
  host: split.shop
  trafficPolicy: {outlierDetection: {consecutive5xxErrors: 2, baseEjectionTime: 600s, maxEjectionPercent: 100}}
  subsets:
  - {name: east, trafficPolicy: {loadBalancer: {localityLbSetting: {failoverPriority: [topology.istio.io/cluster=c1]}}}}
  - {name: west, trafficPolicy: {loadBalancer: {localityLbSetting: {failoverPriority: [topology.istio.io/cluster=c2]}}}}
---
kind: DestinationRule
metadata: {name: warm, namespace: shop}
spec: {host: warm.shop, trafficPolicy: {loadBalancer: {simple: ROUND_ROBIN, warmup: {duration: 2s, minimumPercent: 5}}}}`

const (
	plainPort, splitPort, budgetPort, mutePort = 8080, 8081, 8082, 8083
	copyPort                                   = 8090 // and the two after it
)

// trafficHosts are the services with the pods of their endpoints, in the order of VIPs from
// 10.96.0.1 on. The pod a is of the cluster c1, b of c2.
var trafficHosts = []struct {
	name, pods string
	port       uint16
	protocol   federation.Protocol
}{
	{"a", "a", plainPort, federation.HTTP},
	{"b", "b", plainPort, federation.HTTP},
	{"delegating", "ab", plainPort, federation.HTTP},
	{"mirrored", "a", plainPort, federation.HTTP},
	{"budget", "a", budgetPort, federation.HTTP},
	{"mute", "a", mutePort, federation.HTTP2},
	{"cookie", "ab", plainPort, federation.HTTP},
	{"source", "ab", plainPort, federation.HTTP},
	{"query", "ab", plainPort, federation.HTTP},
	{"maglev", "ab", plainPort, federation.HTTP},
	{"ring", "ab", plainPort, federation.HTTP},
	{"split", "ab", splitPort, federation.HTTP},
	{"warm", "ab", plainPort, federation.HTTP},
}

func trafficURL(name string) string {
	for i, h := range trafficHosts {
		if h.name == name {
			return fmt.Sprintf("http://10.96.0.%d/", i+1)
		}
	}
	return ""
}

var trafficPods = map[byte]struct {
	cluster federation.ClusterID
	address string
}{'a': {"c1", "10.7.0.2"}, 'b': {"c2", "10.7.0.3"}}

// trafficFixture has the services, each endpoint from the cluster of its pod.
func trafficFixture(t *testing.T) *fixture {
	w := newFixture().attach("c1", "").attach("c2", "")
	for i, h := range trafficHosts {
		for j := range h.pods {
			of := trafficPods[h.pods[j]]
			shard := web(at(of.address, h.port))
			shard.Ports[0].Protocol, shard.VIPs = h.protocol, vips(fmt.Sprintf("10.96.0.%d/32", i+1))
			w.say(of.cluster, key(federation.Hostname(h.name+".shop")), shard)
		}
	}
	copies := &federation.Shard{Endpoints: []federation.Endpoint{at(trafficPods['b'].address, copyPort)}}
	copies.Endpoints[0].Ports = nil
	for i := range uint16(3) {
		name := fmt.Sprint("http-", i)
		copies.Ports = append(copies.Ports, federation.Port{Name: name, Number: 80 + i, Protocol: federation.HTTP})
		copies.Endpoints[0].Ports = append(copies.Endpoints[0].Ports, federation.EndpointPort{Name: name, Number: copyPort + i})
	}
	return w.say("c2", key("copied.shop"), copies).config(t, trafficRules)
}

// traffic is what requests of a caller with a sidecar meet.
type traffic struct {
	caller  *testbed.Namespace
	proxy   *testbed.Envoy
	fixture *fixture
	*trafficServers
}

func startTraffic(t *testing.T) *traffic {
	network := testbed.NewNetwork(t, "pods", "10.7.0.0/24")
	a, _ := pod(t, network, trafficPods['a'].address, nil)
	b, _ := pod(t, network, trafficPods['b'].address, nil)
	tr := &traffic{fixture: trafficFixture(t), trafficServers: serveTraffic(t, a, b)}
	tr.caller = testbed.NewNamespace(t, "caller")
	tr.caller.Join(network, "10.7.0.9")
	n := client(t)
	tr.proxy = testbed.StartEnvoy(t, testbed.EnvoyOptions{
		Name: "caller", Namespace: tr.caller, Config: withEndpointFile(t, sidecarConfig(t, n, tr.fixture.snapshot), warmCluster),
		Files: map[string][]byte{endpointFile: endpointsOf(t, tr.fixture.snapshot, warmCluster)},
		Args:  []string{"--service-node", "caller", "--service-cluster", "shop"},
	})
	tr.proxy.WaitReady(time.Minute)
	tr.caller.Capture(testbed.ProxyUID)
	return tr
}
