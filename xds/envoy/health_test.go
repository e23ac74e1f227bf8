package envoy

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// bridged is a snapshot of three networks: n1 without gateways, n2 with two, of
// which one is for n3 alone, and n3 with one. The services are of n2's cluster.
func bridged(services map[string]*federation.Shard, objects ...*federation.Object) *federation.Snapshot {
	s := federation.Empty()
	for i, gateways := range [][]federation.NetworkGateway{nil, {
		{Address: "192.0.2.1", Locality: "r2/z1"},
		{Address: "192.0.2.2", From: []federation.NetworkID{"n3"}},
	}, {{Address: "192.0.2.3"}}} {
		id := federation.NetworkID(fmt.Sprint("n", i+1))
		objects = append(objects, &federation.Object{
			Key: federation.ObjectKey{Group: federation.MeshGroup, Kind: federation.NetworkKind.Name, Name: string(id)}, Digest: "1",
			Spec: &federation.NetworkObject{Gateways: gateways, Clusters: []federation.ClusterID{federation.ClusterID(fmt.Sprint("c", i+1))}},
		})
	}
	e := federation.Edit{Source: federation.ShardKey{Cluster: "c2", Provider: federation.Kubernetes}}
	e.Objects.Set, e.Services.Set = map[federation.ObjectKey]*federation.Object{}, map[federation.ServiceKey]*federation.Shard{}
	for _, o := range objects {
		e.Objects.Set[o.Key] = o
	}
	for name, shard := range services {
		e.Services.Set[federation.ServiceKey{Hostname: federation.Hostname(name + ".local"), Namespace: "shop"}] = shard
	}
	s, _ = federation.Next(s, e)
	return s
}

// meshed is a service with one endpoint, changed as the test wants.
func meshed(change func(*federation.Shard, *federation.Endpoint)) *federation.Shard {
	e := federation.Endpoint{
		Address: federation.IPAddress(netip.MustParseAddr("10.2.0.1")), Network: "n2", Health: federation.Healthy, TLSMode: federation.MutualTLS,
		Ports: []federation.EndpointPort{{Name: "http", Number: 8080}},
	}
	s := &federation.Shard{Ports: []federation.Port{{Name: "http", Number: 80, Protocol: federation.HTTP}}}
	if change != nil {
		change(s, &e)
	}
	s.Endpoints = []federation.Endpoint{e}
	return s
}

func eastWestGateway(hosts ...string) *federation.Object {
	return &federation.Object{
		Key:    federation.ObjectKey{Group: "networking.istio.io", Kind: "Gateway", Namespace: "infra", Name: "ew"},
		Digest: strings.Join(hosts, " "),
		Spec: &networking.Gateway{Servers: []*networking.Server{{
			Hosts: hosts,
			Tls:   &networking.ServerTLSSettings{Mode: networking.ServerTLSSettings_AUTO_PASSTHROUGH},
		}}},
	}
}

// TestProbeNames: gateways are asked for what they surely serve.
func TestProbeNames(t *testing.T) {
	one := map[string]*federation.Shard{"a": meshed(nil)}
	for name, c := range map[string]struct {
		services map[string]*federation.Shard
		objects  []*federation.Object
		want     string
	}{
		"none": {nil, nil, ""},
		"one":  {one, nil, "outbound_.80_._.a.local"},
		"three of many": {
			map[string]*federation.Shard{"d": meshed(nil), "c": meshed(nil), "b": meshed(nil), "a": meshed(nil)},
			nil,
			"outbound_.80_._.a.local outbound_.80_._.b.local outbound_.80_._.c.local",
		},
		"a gateway's hosts": {
			map[string]*federation.Shard{"a": meshed(nil), "b": meshed(nil)},
			[]*federation.Object{eastWestGateway("b.local")},
			"outbound_.80_._.b.local",
		},
		"none of the hosts": {one, []*federation.Object{eastWestGateway("other.local")}, ""},
		"plain text": {
			map[string]*federation.Shard{"a": meshed(func(_ *federation.Shard, e *federation.Endpoint) { e.TLSMode = "" })},
			nil, "",
		},
		"not ready": {map[string]*federation.Shard{"a": meshed(func(_ *federation.Shard,
			e *federation.Endpoint,
		) {
			e.Health = federation.Unhealthy
		})}, nil, ""},
		"of another network": {
			map[string]*federation.Shard{"a": meshed(func(_ *federation.Shard, e *federation.Endpoint) { e.Network = "n1" })},
			nil, "",
		},
		"private": {map[string]*federation.Shard{"a": meshed(func(s *federation.Shard,
			_ *federation.Endpoint,
		) {
			s.ExportTo = []string{"."}
		})}, nil, ""},
		"outside": {map[string]*federation.Shard{"a": meshed(func(s *federation.Shard,
			_ *federation.Endpoint,
		) {
			s.MeshExternal = true
		})}, nil, ""},
		"UDP": {map[string]*federation.Shard{"a": meshed(func(s *federation.Shard,
			_ *federation.Endpoint,
		) {
			s.Ports[0].Protocol = federation.UDP
		})}, nil, ""},
	} {
		if got := strings.Join(ProbeNames(bridged(c.services, c.objects...))["n2"], " "); got != c.want {
			t.Errorf("%s: the names are %q, want %q", name, got, c.want)
		}
	}
}

// told shows what is to be probed: CLUSTER ADDRESSES, one for each name.
func told(p Probes) []string {
	var all []string
	for _, c := range p.Specifier.GetClusterHealthChecks() {
		text := c.GetClusterName()
		for _, l := range c.GetLocalityEndpoints() {
			for _, e := range l.GetEndpoints() {
				text += fmt.Sprintf(" %s:%d", e.GetAddress().GetSocketAddress().GetAddress(), e.GetAddress().GetSocketAddress().GetPortValue())
			}
		}
		all = append(all, text)
	}
	return all
}

func TestProbesOfAGateway(t *testing.T) {
	s := bridged(map[string]*federation.Shard{"a": meshed(nil), "b": meshed(nil)})
	router := func(network federation.NetworkID, identity bool) node.Node {
		return node.Node{
			Type: node.Router, Cluster: "c9", Network: network, Identity: identity,
			Addresses: []netip.Addr{netip.MustParseAddr("10.9.0.1")},
		}
	}
	for name, c := range map[string]struct {
		node node.Node
		want []string
	}{
		"with an identity": {router("n1", true), []string{
			"n2/outbound_.80_._.a.local 192.0.2.1:15443",
			"n2/outbound_.80_._.b.local 192.0.2.1:15443", "n3/ 192.0.2.3:15443",
		}},
		"without":                  {router("n1", false), []string{"n2/ 192.0.2.1:15443", "n3/ 192.0.2.3:15443"}},
		"which the others are for": {router("n3", false), []string{"n2/ 192.0.2.1:15443 192.0.2.2:15443"}},
	} {
		p := ProbesOf(c.node, s, ProbeNames(s))
		if got := told(p); !slices.Equal(got, c.want) {
			t.Errorf("%s: it probes %q, want %q", name, got, c.want)
		}
		if err := p.Specifier.ValidateAll(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, cluster := range p.Specifier.GetClusterHealthChecks() {
			check := cluster.GetHealthChecks()[0]
			if check.GetNoTrafficInterval().AsDuration() != probeInterval || check.GetInterval().AsDuration() != probeInterval ||
				check.GetTimeout().AsDuration() != probeTimeout {
				t.Errorf("%s: the check is %v", name, check)
			}
			_, sni, _ := strings.Cut(cluster.GetClusterName(), "/")
			var tls tlsv3.UpstreamTlsContext
			if len(cluster.GetTransportSocketMatches()) > 0 {
				if err := cluster.GetTransportSocketMatches()[0].GetTransportSocket().GetTypedConfig().UnmarshalTo(&tls); err != nil {
					t.Fatal(err)
				}
			}
			if tls.GetSni() != sni {
				t.Errorf("%s: it asks for %q by %q", name, sni, tls.GetSni())
			}
		}
	}
}

// TestReportsAreRead: any name is enough, and reports about what was not asked for are
// ignored.
func TestReportsAreRead(t *testing.T) {
	s := bridged(nil)
	p := ProbesOf(node.Node{Type: node.Router, Network: "n3", Addresses: []netip.Addr{netip.MustParseAddr("10.9.0.1")}}, s, nil)
	health := func(address string, port uint16, status corev3.HealthStatus) *healthv3.EndpointHealth {
		return &healthv3.EndpointHealth{Endpoint: &endpointv3.Endpoint{Address: resource.SocketAddress(address, port)}, HealthStatus: status}
	}
	report := func(all ...*healthv3.EndpointHealth) *healthv3.EndpointHealthResponse {
		r := &healthv3.EndpointHealthResponse{}
		for _, h := range all {
			r.ClusterEndpointsHealth = append(r.ClusterEndpointsHealth, &healthv3.ClusterEndpointsHealth{
				LocalityEndpointsHealth: []*healthv3.LocalityEndpointsHealth{{EndpointsHealth: []*healthv3.EndpointHealth{h}}},
			})
		}
		return r
	}
	const good, bad, late, unknown = corev3.HealthStatus_HEALTHY, corev3.HealthStatus_UNHEALTHY, corev3.HealthStatus_TIMEOUT,
		corev3.HealthStatus_UNKNOWN
	for name, c := range map[string]struct {
		report *healthv3.EndpointHealthResponse
		want   string
	}{
		"nothing": {nil, "map[]"},
		"each": {
			report(health("192.0.2.1", 15443, good), health("192.0.2.2", 15443, bad)),
			"map[192.0.2.1:15443:true 192.0.2.2:15443:false]",
		},
		"any name is enough": {
			report(health("192.0.2.1", 15443, bad), health("192.0.2.1", 15443, good), health("192.0.2.1", 15443, late)),
			"map[192.0.2.1:15443:true]",
		},
		"late is bad":          {report(health("192.0.2.1", 15443, late)), "map[192.0.2.1:15443:false]"},
		"unknown says nothing": {report(health("192.0.2.1", 15443, unknown)), "map[]"},
		"another gateway": {report(health("192.0.2.3", 15443, bad), health("192.0.2.1", 80, bad), health("", 0, bad),
			health("192.0.2.1", 15443, bad)), "map[192.0.2.1:15443:false]"},
	} {
		if got := fmt.Sprint(p.Found(c.report)); got != c.want {
			t.Errorf("%s: it is read as %s, want %s", name, got, c.want)
		}
	}
}
