package listener_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/facettest"
	"isthmus.dev/isthmus/xds/envoy/listener"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// TestAddressesOfListeners: a listener has one protocol at all of its addresses.
func TestAddressesOfListeners(t *testing.T) {
	for name, test := range map[string]struct {
		address         string
		ipv6, datagrams bool
		want            string
	}{
		"an address":            {"10.0.0.1", false, false, "TCP 10.0.0.1:53"},
		"any":                   {listener.AnyIPv4, false, false, "TCP 0.0.0.0:53"},
		"of IPv6, too":          {listener.AnyIPv4, true, false, "TCP 0.0.0.0:53; TCP :::53"},
		"datagrams":             {"10.0.0.1", false, true, "UDP 10.0.0.1:53; datagrams"},
		"datagrams of IPv6 too": {listener.AnyIPv4, true, true, "UDP 0.0.0.0:53; UDP :::53; datagrams"},
	} {
		l := listener.New("name", test.address, 53)
		if test.ipv6 {
			listener.AlsoIPv6(l, 53)
		}
		if test.datagrams {
			listener.OfDatagrams(l)
		}
		addresses := []*corev3.Address{l.GetAddress()}
		for _, more := range l.GetAdditionalAddresses() {
			addresses = append(addresses, more.GetAddress())
		}
		var got []string
		for _, a := range addresses {
			socket := a.GetSocketAddress()
			got = append(got, fmt.Sprintf("%s %s:%d", socket.GetProtocol(), socket.GetAddress(), socket.GetPortValue()))
		}
		if l.GetUdpListenerConfig() != nil {
			got = append(got, "datagrams")
		}
		if strings.Join(got, "; ") != test.want || l.GetName() != "name" || l.GetTrafficDirection() != corev3.TrafficDirection_OUTBOUND {
			t.Errorf("%s: the listener %s is %q, want %q", name, l.GetName(), got, test.want)
		}
	}
}

// TestConnectionsToUnknownHosts go where the caller wanted, unless the mode or a Sidecar says otherwise.
func TestConnectionsToUnknownHosts(t *testing.T) {
	const proxy = "outbound|8080||proxy.shop"
	for name, test := range map[string]struct {
		facet node.Facet
		want  string
	}{
		"no mode":                       {node.Facet{}, resource.PassthroughCluster},
		"any host":                      {node.Facet{Outbound: federation.AllowAny}, resource.PassthroughCluster},
		"known hosts":                   {node.Facet{Outbound: federation.RegistryOnly}, resource.BlackHoleCluster},
		"an egress proxy":               {node.Facet{EgressProxy: proxy}, proxy},
		"any host by an egress proxy":   {node.Facet{Outbound: federation.AllowAny, EgressProxy: proxy}, proxy},
		"known hosts, and such a proxy": {node.Facet{Outbound: federation.RegistryOnly, EgressProxy: proxy}, resource.BlackHoleCluster},
	} {
		to := &tcpproxyv3.TcpProxy{}
		if err := listener.PassOn(facettest.Mesh{}.View(t, test.facet)).GetTypedConfig().UnmarshalTo(to); err != nil {
			t.Fatal(err)
		}
		if to.GetCluster() != test.want {
			t.Errorf("%s: connections go to %s, want %s", name, to.GetCluster(), test.want)
		}
	}
}

// TestDetection: each kind of filter looks once, in the order in which callers want them. A connection whose client says
// nothing goes on after a time.
func TestDetection(t *testing.T) {
	tls, http := resource.TLSInspectorFilter(), resource.HTTPInspectorFilter()
	for name, test := range map[string]struct {
		timeout string // of MeshSettings
		detect  [][]*listenerv3.ListenerFilter
		want    string
	}{
		"the server's name":     {"", [][]*listenerv3.ListenerFilter{{tls}}, "original_dst tls_inspector 1s"},
		"both":                  {"", [][]*listenerv3.ListenerFilter{{tls, http}}, "original_dst tls_inspector http_inspector 1s"},
		"one after the other":   {"", [][]*listenerv3.ListenerFilter{{http}, {tls}}, "original_dst http_inspector tls_inspector 1s"},
		"one twice":             {"", [][]*listenerv3.ListenerFilter{{tls}, {tls, http}}, "original_dst tls_inspector http_inspector 1s"},
		"one twice at once":     {"", [][]*listenerv3.ListenerFilter{{http, http}}, "original_dst http_inspector 1s"},
		"what is there already": {"", [][]*listenerv3.ListenerFilter{{resource.OriginalDestinationFilter()}}, "original_dst 1s"},
		"another time":          {"3s", [][]*listenerv3.ListenerFilter{{tls}}, "original_dst tls_inspector 3s"},
		"no limit":              {"0s", [][]*listenerv3.ListenerFilter{{tls}}, "original_dst tls_inspector 0s"},
	} {
		m := facettest.Mesh{Settings: &federation.MeshSettings{ProtocolDetectionTimeout: test.timeout}}
		l := &listenerv3.Listener{ListenerFilters: []*listenerv3.ListenerFilter{resource.OriginalDestinationFilter()}}
		for _, wanted := range test.detect {
			listener.Detect(m.View(t, node.Facet{}), l, wanted...)
		}
		var got []string
		for _, f := range l.GetListenerFilters() {
			got = append(got, f.GetName()[strings.LastIndex(f.GetName(), ".")+1:])
		}
		got = append(got, l.GetListenerFiltersTimeout().AsDuration().String())
		if strings.Join(got, " ") != test.want || !l.GetContinueOnListenerFiltersTimeout() {
			t.Errorf("%s: %q, and then connections go on: %t; want %q", name, got, l.GetContinueOnListenerFiltersTimeout(), test.want)
		}
	}
}

// filters are the filters of requests in their order.
func filters(m *hcmv3.HttpConnectionManager) string {
	var names []string
	for _, f := range m.GetHttpFilters() {
		names = append(names, f.GetName()[strings.LastIndex(f.GetName(), ".")+1:])
	}
	return strings.Join(names, " ")
}

// TestFiltersOfRequests: what routes say of faults and CORS comes before names are resolved, and the router comes last.
func TestFiltersOfRequests(t *testing.T) {
	resolved := facettest.Mesh{
		Services: []facettest.Service{{Name: "shop/*.example.com", Provider: federation.External, Shard: federation.Shard{
			MeshExternal: true, Resolution: federation.DynamicDNS, Ports: []federation.Port{facettest.Port(80, federation.HTTP)},
		}}},
		Objects: []*federation.Object{{
			Key: federation.ServiceEntryKind.Key("shop", "any"), Names: []string{federation.DynamicDNSEntries, "*.example.com"},
		}},
	}
	for name, test := range map[string]struct {
		mesh facettest.Mesh
		port uint16
		web  bool
		want string
	}{
		"routes":                          {facettest.Mesh{}, 80, false, "fault cors router"},
		"routes at any port":              {facettest.Mesh{}, 0, false, "fault cors router"},
		"gRPC-Web":                        {facettest.Mesh{}, 80, true, "grpc_web fault cors router"},
		"names of the port":               {resolved, 80, false, "fault cors dynamic_forward_proxy router"},
		"names of any port":               {resolved, 0, false, "fault cors dynamic_forward_proxy router"},
		"names of another port":           {resolved, 81, false, "fault cors router"},
		"gRPC-Web to names of its port":   {resolved, 80, true, "grpc_web fault cors dynamic_forward_proxy router"},
		"gRPC-Web where others are named": {resolved, 81, true, "grpc_web fault cors router"},
	} {
		v := test.mesh.View(t, node.Facet{Scope: node.ScopePublic})
		m := listener.NewRoutedHTTP(v, "outbound_80", "80", test.port, test.web)
		if got := filters(m); got != test.want || m.GetRds().GetRouteConfigName() != "80" {
			t.Errorf("%s: requests go through %s to the routes %s, want %s", name, got, m.GetRds().GetRouteConfigName(), test.want)
		}
		if got := filters(listener.NewInlineHTTP(v, "inbound_80", "inbound|80||")); got != "router" {
			t.Errorf("%s: requests to the workload go through %s", name, got)
		}
	}
}

// TestRequests: requests of others and those to the workload are treated alike, as the mesh and the proxy have it.
func TestRequests(t *testing.T) {
	for name, test := range map[string]struct {
		paths federation.PathNormalization
		node  node.Node
		want  string
	}{
		"default":             {want: "a: normalized"},
		"paths as they are":   {paths: federation.NormalizeNone, want: "a:"},
		"paths by the RFC":    {paths: federation.NormalizeBase, want: "a: normalized"},
		"slashes merged":      {paths: federation.NormalizeMergeSlashes, want: "a: normalized merged"},
		"slashes decoded":     {paths: federation.NormalizeDecodeAndMergeSlashes, want: "a: normalized merged UNESCAPE_AND_FORWARD"},
		"HTTP/1.0":            {node: node.Node{Settings: node.Settings{HTTP: node.HTTPSettings{HTTP10: true}}}, want: "a: normalized HTTP/1.0"},
		"no IDs of requests":  {node: node.Node{Settings: node.Settings{HTTP: node.HTTPSettings{NoRequestID: true}}}, want: "a: normalized no-id"},
		"no headers of Envoy": {node: node.Node{Settings: node.Settings{HTTP: node.HTTPSettings{NoDebugHeaders: true}}}, want: "a: normalized no-headers"},
		"names with an end":   {node: node.Node{Delimited: true}, want: "a;: normalized"},
	} {
		t.Run(name, func(t *testing.T) {
			m := facettest.Mesh{Settings: &federation.MeshSettings{}}
			m.Settings.PathNormalization.Normalization = test.paths
			v := m.View(t, facetOf(t, test.node, m.Snapshot(t)))
			for kind, manager := range map[string]*hcmv3.HttpConnectionManager{
				"routed": listener.NewRoutedHTTP(v, "a", "80", 80, false),
				"inline": listener.NewInlineHTTP(v, "a", "inbound|80||"),
			} {
				if got := treatment(t, manager); got != test.want {
					t.Errorf("%s: %q, want %q", kind, got, test.want)
				}
			}
		})
	}
}

// facetOf is that of the services that everyone sees, of a sidecar like the node.
func facetOf(t *testing.T, n node.Node, s *federation.Snapshot) node.Facet {
	t.Helper()
	n.Type, n.Capture, n.Addresses = node.Sidecar, true, []netip.Addr{netip.MustParseAddr("10.0.0.1")}
	for _, f := range node.Facets(resource.ListenerType, n, s) {
		if f.Scope == node.ScopePublic {
			return f
		}
	}
	t.Fatal("the node has no facet")
	return node.Facet{}
}

// treatment is how the manager treats requests.
func treatment(t *testing.T, m *hcmv3.HttpConnectionManager) string {
	t.Helper()
	router := &routerv3.Router{}
	if err := m.GetHttpFilters()[len(m.GetHttpFilters())-1].GetTypedConfig().UnmarshalTo(router); err != nil {
		t.Fatal(err)
	}
	text := m.GetStatPrefix() + ":"
	for _, word := range []struct {
		is   bool
		text string
	}{
		{m.GetNormalizePath().GetValue(), "normalized"},
		{m.GetMergeSlashes(), "merged"},
		{m.GetPathWithEscapedSlashesAction() != 0, m.GetPathWithEscapedSlashesAction().String()},
		{m.GetHttpProtocolOptions().GetAcceptHttp_10(), "HTTP/1.0"},
		{m.GetGenerateRequestId() != nil && !m.GetGenerateRequestId().GetValue(), "no-id"},
		{router.GetSuppressEnvoyHeaders(), "no-headers"},
		{m.GetStreamIdleTimeout() == nil || m.GetStreamIdleTimeout().AsDuration() != 0, "idle streams end"},
		{m.GetServerHeaderTransformation() != hcmv3.HttpConnectionManager_PASS_THROUGH, "names of servers change"},
		{len(m.GetUpgradeConfigs()) != 1 || m.GetUpgradeConfigs()[0].GetUpgradeType() != "websocket", "no websockets"},
		{!m.GetStripTrailingHostDot(), "hosts keep their last dot"},
	} {
		if word.is {
			text += " " + word.text
		}
	}
	return text
}
