package cluster_test

import (
	"fmt"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	upstreamhttpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/encoding/protojson"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/check"
	"isthmus.dev/isthmus/xds/envoy/cluster"
	"isthmus.dev/isthmus/xds/envoy/facettest"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// line is how the cluster finds, chooses and speaks to its endpoints.
func line(c *clusterv3.Cluster) string {
	words := []string{c.GetType().String(), c.GetLbPolicy().String()}
	if c.GetClusterType() != nil {
		words[0] = c.GetClusterType().GetName()
	}
	if n := check.CountEndpoints(c.GetLoadAssignment()); n > 0 {
		words = append(words, fmt.Sprint(n, " endpoints"))
	}
	if c.GetTransportSocket() != nil {
		words = append(words, strings.TrimPrefix(c.GetTransportSocket().GetName(), "envoy.transport_sockets."))
	}
	for _, m := range c.GetTransportSocketMatches() {
		words = append(words, m.GetName())
	}
	if o := c.GetOutlierDetection(); o != nil {
		words = append(words, "ejects")
	}
	if from := c.GetUpstreamBindConfig().GetSourceAddress().GetAddress(); from != "" {
		words = append(words, "from "+from)
		for _, more := range c.GetUpstreamBindConfig().GetExtraSourceAddresses() {
			words = append(words, more.GetAddress().GetAddress())
		}
	}
	return strings.Join(words, "; ")
}

func protocols(t *testing.T, c *clusterv3.Cluster) string {
	t.Helper()
	options := &upstreamhttpv3.HttpProtocolOptions{}
	packed, ok := c.GetTypedExtensionProtocolOptions()["envoy.extensions.upstreams.http.v3.HttpProtocolOptions"]
	if !ok {
		return "HTTP/1.1" // also what is not HTTP: nothing asks
	}
	if err := packed.UnmarshalTo(options); err != nil {
		t.Fatal(err)
	}
	switch {
	case options.GetUseDownstreamProtocolConfig() != nil:
		return "as the caller"
	case options.GetExplicitHttpConfig().GetHttp2ProtocolOptions() != nil:
		return "HTTP/2"
	}
	return "HTTP/1.1"
}

func TestClustersOfDestinations(t *testing.T) {
	const name = "outbound|80||web.shop.svc.cluster.local"
	sidecar := node.Facet{Scope: node.ScopePublic}
	identity, gateway := node.Facet{Scope: node.ScopePublic, Identity: true}, node.Facet{Scope: node.ScopePublic, Balanced: true}
	http, tcp := facettest.Port(80, federation.HTTP), facettest.Port(80, federation.TCP)
	peer := facettest.Endpoint("10.0.0.1", http)
	peer.TLSMode, peer.ServiceAccount = federation.MutualTLS, "spiffe://cluster.local/ns/shop/sa/web"
	policy := func(policy string) string {
		return `shop/a web.shop.svc.cluster.local {"trafficPolicy": {` + policy + `}}`
	}
	for label, test := range map[string]struct {
		shard  federation.Shard
		rule   string
		facet  node.Facet
		want   string
		speaks string
		code   string // of what is excluded
	}{
		"a service": {shard: federation.Shard{Ports: []federation.Port{http}}, facet: sidecar, want: "EDS; ROUND_ROBIN", speaks: "HTTP/1.1"},
		"HTTP/2": {
			shard: federation.Shard{Ports: []federation.Port{facettest.Port(80, federation.GRPC)}}, facet: sidecar, want: "EDS; ROUND_ROBIN", speaks: "HTTP/2",
		},
		"bytes":        {shard: federation.Shard{Ports: []federation.Port{tcp}}, facet: sidecar, want: "EDS; ROUND_ROBIN", speaks: "HTTP/1.1"},
		"least loaded": {shard: federation.Shard{Ports: []federation.Port{http}}, rule: policy(`"loadBalancer": {"simple": "LEAST_REQUEST"}`), facet: sidecar, want: "EDS; LEAST_REQUEST", speaks: "HTTP/1.1"},
		"by a hash": {
			shard: federation.Shard{Ports: []federation.Port{http}}, facet: sidecar, want: "EDS; RING_HASH", speaks: "HTTP/1.1",
			rule: policy(`"loadBalancer": {"consistentHash": {"useSourceIp": true}}`),
		},
		"a table of no prime": {
			shard: federation.Shard{Ports: []federation.Port{http}}, facet: sidecar, want: "EDS; MAGLEV", speaks: "HTTP/1.1", code: resource.ReasonRuleIgnored,
			rule: policy(`"loadBalancer": {"consistentHash": {"useSourceIp": true, "maglev": {"tableSize": 100}}}`),
		},
		"outliers": {shard: federation.Shard{Ports: []federation.Port{http}}, rule: policy(`"outlierDetection": {"consecutive5xxErrors": 1}`), facet: sidecar, want: "EDS; ROUND_ROBIN; ejects", speaks: "HTTP/1.1"},
		"pods that callers dial": {
			shard: federation.Shard{Ports: []federation.Port{tcp}, Resolution: federation.Passthrough}, facet: sidecar, want: "ORIGINAL_DST; CLUSTER_PROVIDED", speaks: "HTTP/1.1",
		},
		"pods behind a gateway": {
			shard: federation.Shard{Ports: []federation.Port{tcp}, Resolution: federation.Passthrough}, facet: gateway, want: "EDS; ROUND_ROBIN", speaks: "HTTP/1.1",
		},
		"names": {
			shard: federation.Shard{
				Ports: []federation.Port{http}, Resolution: federation.DNSLB,
				Endpoints: []federation.Endpoint{facettest.Endpoint("a.com", http), facettest.Endpoint("b.com", http)},
			}, facet: sidecar, want: "STRICT_DNS; ROUND_ROBIN; 2 endpoints", speaks: "HTTP/1.1",
		},
		"a name for all requests": {
			shard: federation.Shard{
				Ports: []federation.Port{http}, Resolution: federation.DNSRoundRobinLB, Endpoints: []federation.Endpoint{facettest.Endpoint("a.com", http)},
			}, facet: sidecar, want: "LOGICAL_DNS; ROUND_ROBIN; 1 endpoints", speaks: "HTTP/1.1",
		},
		"localities of names": {
			shard: federation.Shard{Ports: []federation.Port{http}, Resolution: federation.DNSLB, Endpoints: []federation.Endpoint{facettest.Endpoint("a.com", http)}},
			rule:  policy(`"loadBalancer": {"localityLbSetting": {"failover": [{"from": "a", "to": "b"}]}}`),
			facet: sidecar, want: "STRICT_DNS; ROUND_ROBIN; 1 endpoints", speaks: "HTTP/1.1", code: resource.ReasonRuleIgnored,
		},
		"TLS": {shard: federation.Shard{Ports: []federation.Port{http}}, rule: policy(`"tls": {"mode": "SIMPLE"}`), facet: sidecar, want: "EDS; ROUND_ROBIN; tls", speaks: "HTTP/1.1"},
		"a header of the PROXY protocol": {
			shard: federation.Shard{Ports: []federation.Port{http}}, rule: policy(`"proxyProtocol": {"version": "V2"}`), facet: sidecar,
			want: "EDS; ROUND_ROBIN; upstream_proxy_protocol", speaks: "HTTP/1.1",
		},
		"TLS that is refused": {
			shard: federation.Shard{Ports: []federation.Port{http}}, rule: policy(`"tls": {"mode": "ISTIO_MUTUAL"}`), facet: sidecar,
			want: "STATIC; ROUND_ROBIN", speaks: "HTTP/1.1", code: resource.ReasonTLS,
		},
		"the mesh, where the endpoint takes it": {
			shard: federation.Shard{Ports: []federation.Port{http}, Endpoints: []federation.Endpoint{peer}}, facet: identity,
			want: "EDS; ROUND_ROBIN; tlsMode-istio", speaks: "HTTP/1.1",
		},
		"the mesh, always": {
			shard: federation.Shard{Ports: []federation.Port{http}, Endpoints: []federation.Endpoint{peer}}, facet: identity, rule: policy(`"tls": {"mode": "ISTIO_MUTUAL"}`),
			want: "EDS; ROUND_ROBIN; tls; tlsMode-istio", speaks: "HTTP/1.1",
		},
		"the mesh, with names of a rule": {
			shard: federation.Shard{Ports: []federation.Port{http}, Endpoints: []federation.Endpoint{peer}}, facet: identity,
			rule: policy(`"tls": {"mode": "ISTIO_MUTUAL", "subjectAltNames": ["spiffe://td/a"]}`), want: "EDS; ROUND_ROBIN; tls", speaks: "HTTP/1.1",
		},
		"plain text in the mesh": {
			shard: federation.Shard{Ports: []federation.Port{http}, Endpoints: []federation.Endpoint{peer}}, facet: identity, rule: policy(`"tls": {"mode": "DISABLE"}`),
			want: "EDS; ROUND_ROBIN", speaks: "HTTP/1.1",
		},
		"callers choose a pod without a sidecar": {
			shard: federation.Shard{
				Ports: []federation.Port{http}, Resolution: federation.Passthrough, Endpoints: []federation.Endpoint{peer, facettest.Endpoint("10.0.0.2", http)},
			}, facet: identity, want: "ORIGINAL_DST; CLUSTER_PROVIDED", speaks: "HTTP/1.1", code: resource.ReasonNoMutualTLS,
		},
		"callers choose among sidecars": {
			shard: federation.Shard{Ports: []federation.Port{http}, Resolution: federation.Passthrough, Endpoints: []federation.Endpoint{peer}},
			facet: identity, want: "ORIGINAL_DST; CLUSTER_PROVIDED; tls", speaks: "HTTP/1.1",
		},
	} {
		t.Run(label, func(t *testing.T) {
			mesh := facettest.Mesh{Services: []facettest.Service{{Name: "shop/web.shop.svc.cluster.local", Cluster: "c1", Shard: test.shard}}}
			if test.rule != "" {
				mesh.Rules = []string{test.rule}
			}
			v := mesh.View(t, test.facet)
			c, ok := cluster.Build(v, name).(*clusterv3.Cluster)
			if !ok {
				t.Fatal("there is no cluster")
			}
			if got := line(c); got != test.want || protocols(t, c) != test.speaks {
				t.Errorf("it is %s; %s\nwant  %s; %s", got, protocols(t, c), test.want, test.speaks)
			}
			var codes []string
			for _, reason := range v.Reasons {
				codes = append(codes, reason.Code)
			}
			if strings.Join(codes, " ") != test.code {
				t.Errorf("it lacks something because of %v, want %q", codes, test.code)
			}
			if err := check.Resource(c); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestLimits: Envoy's default of 1024 would refuse what works without a proxy. A rule sets the limits that it names.
func TestLimits(t *testing.T) {
	for label, test := range map[string]struct{ pool, want string }{
		"none":        {"", "4294967295 connections, 4294967295 pending, 4294967295 requests, 4294967295 retries, 10s"},
		"connections": {`"tcp": {"maxConnections": 5, "connectTimeout": "3s"}`, "5 connections, 4294967295 pending, 4294967295 requests, 4294967295 retries, 3s"},
		"requests": {
			`"http": {"http1MaxPendingRequests": 1, "http2MaxRequests": 2, "maxRetries": 3}`, "4294967295 connections, 1 pending, 2 requests, 3 retries, 10s",
		},
	} {
		policy := &networking.TrafficPolicy{}
		if err := protojson.Unmarshal([]byte(`{"connectionPool": {`+test.pool+`}}`), policy); err != nil {
			t.Fatal(err)
		}
		c := cluster.Inbound("inbound|80||", nil, policy, false)
		limits := c.GetCircuitBreakers().GetThresholds()[0]
		got := fmt.Sprintf("%d connections, %d pending, %d requests, %d retries, %s", limits.GetMaxConnections().GetValue(),
			limits.GetMaxPendingRequests().GetValue(), limits.GetMaxRequests().GetValue(), limits.GetMaxRetries().GetValue(), c.GetConnectTimeout().AsDuration())
		if got != test.want {
			t.Errorf("%s: %s, want %s", label, got, test.want)
		}
	}
}

// TestWaysToTheWorkload: connections that the capture rules would catch again come from an address that they let through.
func TestWaysToTheWorkload(t *testing.T) {
	for label, test := range map[string]struct {
		to   *corev3.Address
		ipv6 bool
		want string
	}{
		"where the caller wanted": {nil, false, "ORIGINAL_DST; CLUSTER_PROVIDED; from 127.0.0.6"},
		"with IPv6":               {nil, true, "ORIGINAL_DST; CLUSTER_PROVIDED; from 127.0.0.6; ::6"},
		"the pod's address":       {resource.SocketAddress("10.0.0.1", 80), false, "STATIC; ROUND_ROBIN; 1 endpoints; from 127.0.0.6"},
		"the loopback":            {resource.SocketAddress("127.0.0.1", 80), false, "STATIC; ROUND_ROBIN; 1 endpoints"},
		"the loopback of IPv6":    {resource.SocketAddress("::1", 80), true, "STATIC; ROUND_ROBIN; 1 endpoints"},
		"a socket":                {&corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: "/run/a"}}}, false, "STATIC; ROUND_ROBIN; 1 endpoints"},
	} {
		c := cluster.Inbound("inbound|80||", test.to, &networking.TrafficPolicy{}, test.ipv6)
		if got := line(c); got != test.want || protocols(t, c) != "as the caller" {
			t.Errorf("%s: %s; %s, want %s", label, got, protocols(t, c), test.want)
		}
		if err := check.Resource(c); err != nil {
			t.Errorf("%s: %v", label, err)
		}
	}
}

func TestClustersThatAreTheSameEverywhere(t *testing.T) {
	for name, want := range map[string]string{
		resource.PassthroughCluster:        "ORIGINAL_DST; CLUSTER_PROVIDED",
		resource.InboundPassthroughCluster: "ORIGINAL_DST; CLUSTER_PROVIDED; from 127.0.0.6",
		resource.BlackHoleCluster:          "STATIC; ROUND_ROBIN",
	} {
		c, ok := cluster.Static(name, false).(*clusterv3.Cluster)
		if got := line(c); !ok || got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if cluster.Static("outbound|80||web", false) != nil {
		t.Error("a destination is the same everywhere")
	}
}
