package envoyfilter

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	api "istio.io/api/networking/v1alpha3"
	"pgregory.net/rapid"

	"isthmus.dev/isthmus/xds/envoy/check"
)

// wildValue draws a value that may or may not be one of Envoy's types.
func wildValue(t *rapid.T, depth int) *structpb.Value {
	kind := rapid.IntRange(0, 5).Draw(t, "kind")
	if depth == 0 {
		kind %= 3
	}
	switch kind {
	case 0:
		return structpb.NewStringValue(rapid.SampledFrom([]string{"", "a", "1s", "-5s", "/", "*", "EDS", "\x00"}).Draw(t, "text"))
	case 1:
		return structpb.NewNumberValue(rapid.SampledFrom([]float64{0, -1, 1, 1e300}).Draw(t, "number"))
	case 2:
		return structpb.NewBoolValue(true)
	case 3:
		list := &structpb.ListValue{}
		for range rapid.IntRange(0, 2).Draw(t, "items") {
			list.Values = append(list.Values, wildValue(t, depth-1))
		}
		return structpb.NewListValue(list)
	}
	return structpb.NewStructValue(wildObject(t, depth))
}

var wildFields = []string{
	"name", "@type", "typed_config", "type", "connect_timeout", "domains", "routes", "match", "prefix", "route",
	"cluster", "virtual_hosts", "filters",
	"filter_chains", "address", "socket_address", "port_value", "type_url", "value", "load_assignment", "endpoints",
	"lb_endpoints", "http_filters",
	"transport_socket", "circuit_breakers", "thresholds", "max_connections", "filter_chain_match", "direct_response", "status",
}

func wildObject(t *rapid.T, depth int) *structpb.Struct {
	s := &structpb.Struct{Fields: map[string]*structpb.Value{}}
	for range rapid.IntRange(0, 3).Draw(t, "fields") {
		name := rapid.SampledFrom(wildFields).Draw(t, "field")
		if name == "@type" {
			s.Fields[name] = structpb.NewStringValue(rapid.SampledFrom([]string{
				"type.googleapis.com/envoy.extensions.filters.http.router.v3.Router", "type.googleapis.com/xds.type.v3.TypedStruct", "nope", "",
				"type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
			}).Draw(t, "type"))
			continue
		}
		s.Fields[name] = wildValue(t, depth-1)
	}
	return s
}

func wildPatch(t *rapid.T, i int) Patch {
	p := &api.EnvoyFilter_EnvoyConfigObjectPatch{
		ApplyTo: api.EnvoyFilter_ApplyTo(rapid.IntRange(0, 12).Draw(t, "applyTo")),
		Patch: &api.EnvoyFilter_Patch{
			Operation:   operation(rapid.IntRange(0, 9).Draw(t, "operation")),
			FilterClass: filterClass(rapid.SampledFrom([]int{0, 0, 0, 1, 2, 3, 9}).Draw(t, "class")),
		},
	}
	if rapid.Bool().Draw(t, "has a value") {
		p.Patch.Value = wildObject(t, 4)
	}
	if rapid.Bool().Draw(t, "names a filter") {
		p.Match = &api.EnvoyFilter_EnvoyConfigObjectMatch{ObjectTypes: &api.EnvoyFilter_EnvoyConfigObjectMatch_Listener{Listener: &api.EnvoyFilter_ListenerMatch{
			FilterChain: &api.EnvoyFilter_ListenerMatch_FilterChainMatch{Filter: &api.EnvoyFilter_ListenerMatch_FilterMatch{
				Name: rapid.SampledFrom([]string{"envoy.filters.network.http_connection_manager", "envoy.filters.network.tcp_proxy"}).Draw(t,
					"filter"),
				SubFilter: &api.EnvoyFilter_ListenerMatch_SubFilterMatch{Name: rapid.SampledFrom([]string{
					"", "envoy.filters.http.router",
					"envoy.filters.http.fault",
				}).Draw(t, "sub filter")},
			}},
		}}}
	}
	return Patch{Index: i, Spec: p}
}

// TestK31PropertyWildPatches: whatever the patches, nothing panics, what was built stays as it is,
// and the result passes the check of what Envoy would refuse.
func TestK31PropertyWildPatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var patches []Patch
		for i := range rapid.IntRange(1, 4).Draw(t, "patches") {
			patches = append(patches, wildPatch(t, i))
		}
		for _, m := range []proto.Message{inboundListener(), webRoutes(), webCluster()} {
			before := proto.Clone(m)
			now, outcomes := Patched(m, patches)
			if !proto.Equal(m, before) {
				t.Fatal("what was built has changed")
			}
			if now != nil {
				if err := check.Resource(now); err != nil {
					t.Fatalf("%v: %+v", err, outcomes)
				}
			}
		}
	})
}
