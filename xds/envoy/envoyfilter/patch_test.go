package envoyfilter

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	faultv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	api "istio.io/api/networking/v1alpha3"
	"sigs.k8s.io/yaml"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// patchesIn reads the patches of a spec.
func patchesIn(t testing.TB, text string) []Patch {
	t.Helper()
	body, err := yaml.YAMLToJSON([]byte("configPatches:\n" + text))
	if err != nil {
		t.Fatal(err)
	}
	spec := &api.EnvoyFilter{}
	if err := protojson.Unmarshal(body, spec); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	var patches []Patch
	for i, p := range spec.GetConfigPatches() {
		patches = append(patches, Patch{Object: federation.ObjectKey{Name: "tried"}, Index: i, Spec: p})
	}
	return patches
}

func inboundListener() *listenerv3.Listener {
	manager := &hcmv3.HttpConnectionManager{
		StatPrefix: "inbound_8080",
		HttpFilters: []*hcmv3.HttpFilter{
			resource.InHTTP(resource.FaultFilter, &faultv3.HTTPFault{}),
			resource.InHTTP(resource.RouterFilter, &routerv3.Router{}),
		},
		RouteSpecifier: &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: &routev3.RouteConfiguration{
			Name: "inbound_8080", VirtualHosts: []*routev3.VirtualHost{resource.Everything("inbound_8080", resource.ForwardTo("here"))},
		}},
	}
	return &listenerv3.Listener{
		Name: resource.VirtualInbound, Address: resource.SocketAddress("0.0.0.0", resource.InboundPort),
		ListenerFilters: []*listenerv3.ListenerFilter{resource.OriginalDestinationFilter(), resource.TLSInspectorFilter()},
		FilterChains: []*listenerv3.FilterChain{{
			FilterChainMatch: &listenerv3.FilterChainMatch{DestinationPort: wrapperspb.UInt32(8080)},
			Filters:          []*listenerv3.Filter{resource.Filter(resource.HTTPFilter, manager)},
		}},
		DefaultFilterChain: &listenerv3.FilterChain{Filters: []*listenerv3.Filter{resource.TCPProxy("here")}},
	}
}

func webRoutes() *routev3.RouteConfiguration {
	web := resource.Everything("web.shop:80", resource.ForwardTo("outbound|80||web.shop"))
	web.Domains, web.Routes[0].Name = []string{"web.shop"}, "main"
	return &routev3.RouteConfiguration{Name: "80", VirtualHosts: []*routev3.VirtualHost{
		web,
		resource.Everything("others", resource.ForwardTo("PassthroughCluster")),
	}}
}

func webCluster() *clusterv3.Cluster {
	return &clusterv3.Cluster{
		Name: "outbound|80|v1|web.shop", ConnectTimeout: durationpb.New(5e9), AltStatName: "before",
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		EdsClusterConfig:     &clusterv3.Cluster_EdsClusterConfig{EdsConfig: resource.ADSSource()},
	}
}

// shape is what of a resource the tables look at.
func shape(m proto.Message) string {
	var says []string
	switch m := m.(type) {
	case nil:
		return "removed"
	case *clusterv3.Cluster:
		return fmt.Sprintf("timeout=%ds breakers=%d stat=%s", m.GetConnectTimeout().GetSeconds(),
			len(m.GetCircuitBreakers().GetThresholds()), m.GetAltStatName())
	case *routev3.RouteConfiguration:
		for _, host := range m.GetVirtualHosts() {
			says = append(says, host.GetName()+"("+strings.Join(names(host.GetRoutes()), " ")+")")
		}
		if len(m.GetRequestHeadersToAdd()) > 0 {
			says = append(says, "adds headers")
		}
	case *listenerv3.Listener:
		for _, f := range m.GetListenerFilters() {
			says = append(says, short(f.GetName()))
		}
		for _, chain := range chainsOf(m) {
			says = append(says, chainShape(chain))
		}
		if m.GetPerConnectionBufferLimitBytes() != nil {
			says = append(says, "limit")
		}
	}
	return strings.Join(says, " ")
}

func chainShape(chain *listenerv3.FilterChain) string {
	var filters []string
	for _, f := range chain.GetFilters() {
		text := short(f.GetName())
		manager := &hcmv3.HttpConnectionManager{}
		if f.GetTypedConfig().UnmarshalTo(manager) == nil {
			text += "<" + strings.Join(names(manager.GetHttpFilters()), " ") + ">" + shape(manager.GetRouteConfig())
			if manager.GetXffNumTrustedHops() > 0 {
				text += " hops"
			}
		}
		filters = append(filters, text)
	}
	return fmt.Sprintf("%d[%s]", chain.GetFilterChainMatch().GetDestinationPort().GetValue(), strings.Join(filters, " "))
}

func names[T interface{ GetName() string }](items []T) []string {
	var all []string
	for _, item := range items {
		all = append(all, short(item.GetName()))
	}
	return all
}

func short(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

const unchangedListener = "original_dst tls_inspector 8080[http_connection_manager<fault router>inbound_8080(default)] 0[tcp_proxy]"

// TestK30EachOperation: each operation on what each applyTo names. A row without a
// wanted error has one patch that matches, unless nothing changes.
func TestK30EachOperation(t *testing.T) {
	const (
		hcm    = `listener: {filterChain: {filter: {name: envoy.filters.network.http_connection_manager`
		lua    = `value: {name: lua, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua, default_source_code: {inline_string: "x"}}}`
		rbac   = `value: {name: rbac, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.rbac.v3.RBAC, stat_prefix: a}}`
		echo   = `value: {name: echo, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.echo.v3.Echo}}`
		finder = `value: {name: finder, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.listener.http_inspector.v3.HttpInspector}}`
		route  = `value: {name: added, match: {prefix: /added}, direct_response: {status: 200}}`
		host   = `value: {name: added, domains: [added.shop], routes: [{name: r, match: {prefix: /}, direct_response: {status: 200}}]}`
		chain  = `value: {filter_chain_match: {destination_port: 9}, filters: [{name: tcp, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, stat_prefix: a, cluster: here}}]}`
	)
	for _, c := range []struct{ applyTo, match, operation, value, want, err string }{
		{"LISTENER", "{}", "MERGE", `value: {per_connection_buffer_limit_bytes: 5}`, unchangedListener + " limit", ""},
		{
			"LISTENER", "{listener: {portNumber: 15006}}", "MERGE", `value: {per_connection_buffer_limit_bytes: 5}`,
			unchangedListener + " limit", "",
		},
		{"LISTENER", "{listener: {name: other}}", "MERGE", `value: {per_connection_buffer_limit_bytes: 5}`, "", ""},
		{"LISTENER", "{}", "REMOVE", "", "", "cannot be removed"},
		{"LISTENER", "{}", "MERGE", `value: {address: {socket_address: {port_value: 1}}}`, "", "address: it cannot change"},
		{"FILTER_CHAIN", "{listener: {portNumber: 8080}}", "REMOVE", "", "original_dst tls_inspector 0[tcp_proxy]", ""},
		{"FILTER_CHAIN", "{listener: {filterChain: {destinationPort: 8080}}}", "MERGE", `value: {name: named}`, unchangedListener, ""},
		{"FILTER_CHAIN", "{listener: {filterChain: {sni: web.shop}}}", "REMOVE", "", "", ""},
		{
			"FILTER_CHAIN", "{}", "ADD", chain,
			"original_dst tls_inspector 8080[http_connection_manager<fault router>inbound_8080(default)] 9[tcp] 0[tcp_proxy]", "",
		},
		{"FILTER_CHAIN", "{}", "REMOVE", "", "", "filter_chains"},
		{"LISTENER_FILTER", "{}", "ADD", finder, strings.Replace(unchangedListener, "tls_inspector", "tls_inspector finder", 1), ""},
		{
			"LISTENER_FILTER", "{listener: {listenerFilter: envoy.filters.listener.tls_inspector}}", "INSERT_BEFORE", finder,
			strings.Replace(unchangedListener, "tls_inspector", "finder tls_inspector", 1), "",
		},
		{
			"LISTENER_FILTER", "{listener: {listenerFilter: envoy.filters.listener.tls_inspector}}", "REMOVE", "",
			strings.Replace(unchangedListener, "tls_inspector ", "", 1), "",
		},
		{
			"NETWORK_FILTER", "{listener: {filterChain: {filter: {name: envoy.filters.network.tcp_proxy}}}}", "INSERT_BEFORE", rbac,
			strings.Replace(unchangedListener, "[tcp_proxy", "[rbac tcp_proxy", 1), "",
		},
		{"NETWORK_FILTER", "{listener: {portNumber: 8080}}", "ADD", rbac, strings.Replace(unchangedListener, "[http", "[rbac http", 1), ""},
		{
			"NETWORK_FILTER", "{listener: {portNumber: 8080}}", "INSERT_FIRST", rbac,
			strings.Replace(unchangedListener, "[http", "[rbac http", 1), "",
		},
		{
			"NETWORK_FILTER", "{listener: {filterChain: {filter: {name: envoy.filters.network.tcp_proxy}}}}", "INSERT_AFTER",
			rbac, "", "must be the last one",
		},
		{
			"NETWORK_FILTER", "{listener: {filterChain: {filter: {name: envoy.filters.network.tcp_proxy}}}}", "REPLACE", echo,
			strings.Replace(unchangedListener, "tcp_proxy", "echo", 1), "",
		},
		{
			"NETWORK_FILTER", "{listener: {filterChain: {filter: {name: envoy.filters.network.tcp_proxy}}}}",
			"REMOVE", "", "", "there is no filter",
		},
		{
			"NETWORK_FILTER", "{" + hcm + "}}}}", "MERGE",
			`value: {typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, xff_num_trusted_hops: 2}}`, strings.Replace(unchangedListener, "(default)]", "(default) hops]", 1), "",
		},
		{
			"NETWORK_FILTER", "{listener: {filterChain: {filter: {name: envoy.http_connection_manager}}}}", "MERGE",
			`value: {typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, stat_prefix: a, cluster: here}}`, "", "the value has the type",
		},
		{
			"HTTP_FILTER", "{" + hcm + ", subFilter: {name: envoy.filters.http.router}}}}}", "INSERT_BEFORE", lua,
			strings.Replace(unchangedListener, "<fault router", "<fault lua router", 1), "",
		},
		{
			"HTTP_FILTER", "{" + hcm + ", subFilter: {name: envoy.filters.http.fault}}}}}", "INSERT_AFTER", lua,
			strings.Replace(unchangedListener, "<fault router", "<fault lua router", 1), "",
		},
		{"HTTP_FILTER", "{" + hcm + "}}}}", "INSERT_BEFORE", lua, strings.Replace(unchangedListener, "<fault", "<lua fault", 1), ""},
		{"HTTP_FILTER", "{}", "INSERT_AFTER", lua, strings.Replace(unchangedListener, " router", " lua router", 1), ""},
		{"HTTP_FILTER", "{}", "ADD", lua, strings.Replace(unchangedListener, " router", " lua router", 1), ""},
		{"HTTP_FILTER", "{}", "INSERT_FIRST", lua, strings.Replace(unchangedListener, "<fault", "<lua fault", 1), ""},
		{"HTTP_FILTER", "{" + hcm + ", subFilter: {name: nope}}}}}", "INSERT_FIRST", lua, "", ""},
		{
			"HTTP_FILTER", "{" + hcm + ", subFilter: {name: envoy.filters.http.fault}}}}}", "REPLACE", lua,
			strings.Replace(unchangedListener, "<fault", "<lua", 1), "",
		},
		{
			"HTTP_FILTER", "{" + hcm + ", subFilter: {name: envoy.filters.http.fault}}}}}", "REMOVE", "",
			strings.Replace(unchangedListener, "<fault ", "<", 1), "",
		},
		{
			"HTTP_FILTER", "{" + hcm + ", subFilter: {name: envoy.filters.http.fault}}}}}", "MERGE",
			`value: {name: delay, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault, max_active_faults: 1}}`, strings.Replace(unchangedListener, "<fault", "<delay", 1), "",
		},
		{"HTTP_FILTER", "{" + hcm + ", subFilter: {name: envoy.filters.http.router}}}}}", "REMOVE", "", "", "must be there"},
		{"HTTP_FILTER", "{" + hcm + ", subFilter: {name: envoy.router}}}}}", "INSERT_AFTER", lua, "", "the last one"},
		{
			"ROUTE_CONFIGURATION", "{routeConfiguration: {name: 'inbound|8080||'}}", "MERGE", `value: {most_specific_header_mutations_wins: true}`,
			unchangedListener, "",
		},
		{"HTTP_ROUTE", "{routeConfiguration: {portNumber: 8080}}", "INSERT_FIRST", route, strings.Replace(unchangedListener, "inbound_8080(default)",
			"inbound_8080(added default)", 1), ""},
		{
			"ROUTE_CONFIGURATION", "{routeConfiguration: {name: '80'}}", "MERGE", `value: {request_headers_to_add: [{header: {key: a, value: b}}]}`,
			"web.shop:80(main) others(default) adds headers", "",
		},
		{
			"ROUTE_CONFIGURATION", "{routeConfiguration: {portNumber: 81}}", "MERGE",
			`value: {request_headers_to_add: [{header: {key: a, value: b}}]}`, "", "",
		},
		{"VIRTUAL_HOST", "{}", "ADD", host, "web.shop:80(main) others(default) added(r)", ""},
		{"VIRTUAL_HOST", "{routeConfiguration: {vhost: {name: 'web.shop:80'}}}", "REMOVE", "", "others(default)", ""},
		{
			"VIRTUAL_HOST", "{routeConfiguration: {vhost: {domainName: web.shop}}}", "MERGE", `value: {name: renamed}`,
			"renamed(main) others(default)", "",
		},
		{"VIRTUAL_HOST", "{routeConfiguration: {vhost: {domainName: web.shop}}}", "MERGE", `value: {domains: ["*"]}`, "", "there twice"},
		{"HTTP_ROUTE", "{routeConfiguration: {vhost: {name: 'web.shop:80'}}}", "ADD", route, "web.shop:80(main added) others(default)", ""},
		{
			"HTTP_ROUTE", "{routeConfiguration: {vhost: {name: 'web.shop:80', route: {name: main}}}}", "INSERT_BEFORE", route,
			"web.shop:80(added main) others(default)", "",
		},
		{
			"HTTP_ROUTE", "{routeConfiguration: {vhost: {name: 'web.shop:80', route: {action: ROUTE}}}}", "INSERT_AFTER", route,
			"web.shop:80(main added) others(default)", "",
		},
		{"HTTP_ROUTE", "{routeConfiguration: {vhost: {route: {action: REDIRECT}}}}", "MERGE", `value: {name: x}`, "", ""},
		{"HTTP_ROUTE", "{routeConfiguration: {vhost: {name: 'web.shop:80'}}}", "MERGE", `value: {name: x}`, "web.shop:80(x) others(default)", ""},
		{"HTTP_ROUTE", "{routeConfiguration: {vhost: {route: {name: default}}}}", "MERGE", `value: {name: x}`, "web.shop:80(main) others(x)", ""},
		{"HTTP_ROUTE", "{routeConfiguration: {vhost: {name: 'web.shop:80'}}}", "REMOVE", "", "", "no domain or no route"},
		{
			"CLUSTER", "{}", "MERGE", `value: {connect_timeout: 1s, circuit_breakers: {thresholds: [{max_connections: 1}]}}`,
			"timeout=1s breakers=1 stat=before", "",
		},
		{
			"CLUSTER", "{cluster: {service: web.shop, portNumber: 80, subset: v1}}", "MERGE", `value: {alt_stat_name: after}`,
			"timeout=5s breakers=0 stat=after", "",
		},
		{"CLUSTER", "{cluster: {service: web.shop, subset: v2}}", "MERGE", `value: {alt_stat_name: after}`, "", ""},
		{"CLUSTER", "{cluster: {name: 'outbound|80|v1|web.shop'}}", "REMOVE", "", "removed", ""},
		{"CLUSTER", "{context: SIDECAR_INBOUND}", "MERGE", `value: {alt_stat_name: after}`, "", ""},
		{"CLUSTER", "{}", "MERGE", `value: {name: other}`, "", "name: it cannot change"},
		{"CLUSTER", "{}", "MERGE_AND_REPLACE_LIST", `value: {alt_stat_name: after}`, "timeout=5s breakers=0 stat=after", ""},
	} {
		t.Run(strings.Join([]string{c.applyTo, c.operation, c.match}, " "), func(t *testing.T) {
			patches := patchesIn(t, fmt.Sprintf("- applyTo: %s\n  match: %s\n  patch:\n    operation: %s\n    %s",
				c.applyTo, c.match, c.operation, c.value))
			before := map[string]proto.Message{"CLUSTER": webCluster()}[c.applyTo]
			switch {
			case before != nil:
			case strings.Contains(unchangedListener+c.want, "original_dst") && (strings.HasPrefix(c.want, "original") ||
				strings.Contains("LISTENER FILTER_CHAIN LISTENER_FILTER NETWORK_FILTER HTTP_FILTER", c.applyTo)):
				before = inboundListener()
			default:
				before = webRoutes()
			}
			kept := proto.Clone(before)
			now, outcomes := Patched(before, patches)
			if len(outcomes) != 1 {
				t.Fatalf("outcomes: %+v; problems: %v", outcomes, Problems(&api.EnvoyFilter{ConfigPatches: []*configPatch{patches[0].Spec}}))
			}
			o := outcomes[0]
			wantMatch := c.want != "" || c.err != ""
			if o.Matched != wantMatch || (o.Err != nil) != (c.err != "") || o.Err != nil && !strings.Contains(o.Err.Error(), c.err) {
				t.Errorf("matched %v (want %v), error %v, want %q", o.Matched, wantMatch, o.Err, c.err)
			}
			want := c.want
			if want == "" {
				want = shape(kept)
			}
			if got := shape(now); got != want {
				t.Errorf("made\n%s\nwant\n%s", got, want)
			}
			if !proto.Equal(before, kept) {
				t.Error("what was built has changed")
			}
		})
	}
}

// TestK30ExtensionsOfEnvoy: a type that the hub is not built with is a TypedStruct, and one that it
// has is that type, so that both can be merged.
func TestK30ExtensionsOfEnvoy(t *testing.T) {
	patches := patchesIn(t, `
- applyTo: HTTP_FILTER
  patch:
    operation: INSERT_FIRST
    value: {name: limit, typed_config: {"@type": type.googleapis.com/udpa.type.v1.TypedStruct, type_url: type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit, value: {stat_prefix: a, token_bucket: {max_tokens: 1}}}}
- applyTo: HTTP_FILTER
  match: {listener: {filterChain: {filter: {name: envoy.filters.network.http_connection_manager, subFilter: {name: limit}}}}}
  patch:
    operation: MERGE
    value: {typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit, token_bucket: {fill_interval: 1s}}}
- applyTo: HTTP_FILTER
  match: {listener: {filterChain: {filter: {name: envoy.filters.network.http_connection_manager, subFilter: {name: envoy.filters.http.fault}}}}}
  patch:
    operation: MERGE
    value: {typed_config: {"@type": type.googleapis.com/udpa.type.v1.TypedStruct, type_url: type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault, value: {max_active_faults: 7}}}
`)
	now, outcomes := Patched(inboundListener(), patches)
	for _, o := range outcomes {
		if o.Err != nil || !o.Matched {
			t.Errorf("%s: matched %v, %v", o.Patch.Field(), o.Matched, o.Err)
		}
	}
	manager := &hcmv3.HttpConnectionManager{}
	if err := now.(*listenerv3.Listener).GetFilterChains()[0].GetFilters()[0].GetTypedConfig().UnmarshalTo(manager); err != nil {
		t.Fatal(err)
	}
	text, err := protojson.Marshal(manager.GetHttpFilters()[0])
	var compact map[string]any
	if err != nil || json.Unmarshal(text, &compact) != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal(compact)
	want := `{"name":"limit","typedConfig":{"@type":"type.googleapis.com/xds.type.v3.TypedStruct","typeUrl":"type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit","value":{"stat_prefix":"a","token_bucket":{"fill_interval":"1s","max_tokens":1}}}}`
	if string(got) != want {
		t.Errorf("the extension is\n%s\nwant\n%s", got, want)
	}
	fault := &faultv3.HTTPFault{}
	if err := manager.GetHttpFilters()[1].GetTypedConfig().UnmarshalTo(fault); err != nil || fault.GetMaxActiveFaults().GetValue() != 7 {
		t.Errorf("the known type: %v, %v", fault, err)
	}
}

// TestK31OnePatchAloneIsLeftOut: the others stay.
func TestK31OnePatchAloneIsLeftOut(t *testing.T) {
	now, outcomes := Patched(webCluster(), patchesIn(t, `
- {applyTo: CLUSTER, patch: {operation: MERGE, value: {connect_timeout: 2s}}}
- {applyTo: CLUSTER, patch: {operation: MERGE, value: {type: LOGICAL_DNS}}}
- {applyTo: CLUSTER, patch: {operation: MERGE, value: {alt_stat_name: last}}}
`))
	if got := shape(now); got != "timeout=2s breakers=0 stat=last" {
		t.Error(got)
	}
	if outcomes[0].Err != nil || outcomes[1].Err == nil || outcomes[2].Err != nil {
		t.Errorf("%+v", outcomes)
	}
}

// TestK36WhatNoPatchMayDo: it reads no file or environment of the proxy, and takes no name of the
// hub's own.
func TestK36WhatNoPatchMayDo(t *testing.T) {
	for name, c := range map[string]struct{ applyTo, operation, value, want string }{
		"a file": {
			"HTTP_ROUTE", "ADD",
			`{match: {prefix: /}, direct_response: {status: 200, body: {filename: /var/run/secrets/token}}}`, "filename: reading a file",
		},
		"the environment": {
			"HTTP_ROUTE", "ADD", `{match: {prefix: /}, direct_response: {status: 200, body: {environmentVariable: TOKEN}}}`,
			"reading the environment",
		},
		"within extensions": {
			"HTTP_FILTER", "ADD",
			`{name: lua, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua, source_codes: {a: {filename: /x}}}}`,
			"reading a file",
		},
		"a watched file":     {"CLUSTER", "MERGE", `{eds_cluster_config: {eds_config: {path_config_source: {path: /x}}}}`, "reading a file"},
		"an old watched one": {"CLUSTER", "MERGE", `{eds_cluster_config: {eds_config: {path: /x}}}`, "reading a file"},
		"a service's name":   {"CLUSTER", "ADD", `{name: "outbound|80||web.shop", type: STATIC}`, "the hub gives itself"},
		"a listener's name":  {"LISTENER", "ADD", `{name: 0.0.0.0_80}`, "the hub gives itself"},
		"endpoints": {
			"CLUSTER", "ADD", `{name: mine, type: EDS, eds_cluster_config: {eds_config: {ads: {}}}}`,
			"the hub has no endpoints",
		},
		"the bootstrap":     {"BOOTSTRAP", "MERGE", `{}`, "BOOTSTRAP is not supported"},
		"extension configs": {"EXTENSION_CONFIG", "ADD", `{}`, "EXTENSION_CONFIG is not supported"},
		"unknown fields":    {"CLUSTER", "MERGE", `{no_such_field: 1}`, "unknown field"},
		"order of clusters": {"CLUSTER", "INSERT_FIRST", `{name: a}`, "INSERT_FIRST is not for CLUSTER"},
	} {
		patches := patchesIn(t, fmt.Sprintf("- applyTo: %s\n  patch: {operation: %s, value: %s}", c.applyTo, c.operation, c.value))
		problems := Problems(&api.EnvoyFilter{ConfigPatches: []*configPatch{patches[0].Spec}})
		if len(problems) != 1 || !strings.Contains(problems[0].Message, c.want) {
			t.Errorf("%s: %v, want %q", name, problems, c.want)
		}
		if m := webCluster(); len(patches) == 1 {
			if now, outcomes := Patched(m, patches); now != proto.Message(m) || len(outcomes) != 0 {
				t.Errorf("%s: has an effect", name)
			}
		}
	}
}

// TestG117FiltersAreRemovedByName: as in Istio, a patch that removes, replaces or merges filters
// without the name that it needs has no effect and says so; a listener keeps its original_dst.
func TestG117FiltersAreRemovedByName(t *testing.T) {
	const (
		hcm   = `{listener: {filterChain: {filter: {name: envoy.filters.network.http_connection_manager}}}}`
		value = `, value: {name: renamed}`
	)
	for _, c := range []struct{ applyTo, match, operation, value, want string }{
		{"LISTENER_FILTER", "{}", "REMOVE", "", "match.listener.listenerFilter"},
		{"LISTENER_FILTER", "{listener: {name: virtualInbound}}", "REMOVE", "", "match.listener.listenerFilter"},
		{"LISTENER_FILTER", "{}", "REPLACE", value, "match.listener.listenerFilter"},
		{"LISTENER_FILTER", "{}", "MERGE", value, "match.listener.listenerFilter"},
		{"LISTENER_FILTER", "{}", "MERGE_AND_REPLACE_LIST", value, "match.listener.listenerFilter"},
		{"NETWORK_FILTER", "{listener: {portNumber: 8080}}", "REMOVE", "", "match.listener.filterChain.filter.name"},
		{"NETWORK_FILTER", "{}", "REPLACE", value, "match.listener.filterChain.filter.name"},
		{"HTTP_FILTER", "{}", "REMOVE", "", "match.listener.filterChain.filter.subFilter.name"},
		{"HTTP_FILTER", hcm, "REMOVE", "", "match.listener.filterChain.filter.subFilter.name"},
		{"HTTP_FILTER", hcm, "REPLACE", value, "match.listener.filterChain.filter.subFilter.name"},
	} {
		patches := patchesIn(t, fmt.Sprintf("- applyTo: %s\n  match: %s\n  patch: {operation: %s%s}", c.applyTo, c.match, c.operation, c.value))
		problems := Problems(&api.EnvoyFilter{ConfigPatches: []*configPatch{patches[0].Spec}})
		want := fmt.Sprintf("match: %s of %s needs the name of the filter in %s; this patch has no effect", c.operation, c.applyTo, c.want)
		if len(problems) != 1 || problems[0].Message != want {
			t.Errorf("%s of %s, match %s: %v, want %q", c.operation, c.applyTo, c.match, problems, want)
		}
		before := inboundListener()
		if now, outcomes := Patched(before, patches); now != proto.Message(before) || len(outcomes) != 0 {
			t.Errorf("%s of %s, match %s: the listener is now %s", c.operation, c.applyTo, c.match, shape(now))
		}
	}
	// Of network and HTTP filters, those of the value's type are merged without a name.
	now, outcomes := Patched(inboundListener(), patchesIn(t, `
- applyTo: NETWORK_FILTER
  match: {listener: {portNumber: 8080}}
  patch:
    operation: MERGE
    value: {typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, xff_num_trusted_hops: 2}}
`))
	if got := shape(now); len(outcomes) != 1 || outcomes[0].Err != nil || !strings.Contains(got, "hops") {
		t.Errorf("merged without a name: %s, %+v", got, outcomes)
	}
}
