package xds

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"
	api "istio.io/api/networking/v1alpha3"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
)

// enablingFilters are settings by which EnvoyFilters of the namespace take effect.
func enablingFilters(namespace string) *federation.Object {
	settings := &federation.MeshSettings{}
	settings.EnvoyFilters.Namespaces = []string{namespace}
	return &federation.Object{Key: federation.MeshSettingsKey, Digest: namespace, Spec: settings}
}

func setObjects(objects ...*federation.Object) federation.Edit {
	set := map[federation.ObjectKey]*federation.Object{}
	for _, o := range objects {
		set[o.Key] = o
	}
	return federation.Edit{Objects: federation.Delta[federation.ObjectKey, *federation.Object]{Set: set}}
}

// filterOf is an EnvoyFilter with one patch for all proxies of its namespace, as configuration
// indexes it.
func filterOf(name string, to api.EnvoyFilter_ApplyTo, op api.EnvoyFilter_Patch_Operation, match *api.EnvoyFilter_EnvoyConfigObjectMatch,
	value map[string]any,
) *federation.Object {
	body, err := structpb.NewStruct(value)
	if err != nil {
		panic(err)
	}
	spec := &api.EnvoyFilter{ConfigPatches: []*api.EnvoyFilter_EnvoyConfigObjectPatch{{
		ApplyTo: to, Match: match,
		Patch: &api.EnvoyFilter_Patch{Operation: op, Value: body},
	}}}
	names := []string{federation.WorkloadsName + "shop"}
	for _, of := range []string{federation.PatchedCluster, federation.PatchedListener, federation.PatchedRoutes} {
		names = append(names, federation.PatchName("shop", of, "*"))
	}
	return &federation.Object{Key: tenantKey("EnvoyFilter", name), Names: names, Digest: spec.String(), Spec: spec}
}

// brokenFilters are patches of what tenant a has that only Envoy finds to be wrong, and what it
// says.
func brokenFilters() map[string]*federation.Object {
	host := &api.EnvoyFilter_EnvoyConfigObjectMatch{ObjectTypes: &api.EnvoyFilter_EnvoyConfigObjectMatch_RouteConfiguration{
		RouteConfiguration: &api.EnvoyFilter_RouteConfigurationMatch{Vhost: &api.EnvoyFilter_RouteConfigurationMatch_VirtualHostMatch{Name: "a.example.com:8081"}},
	}}
	chain := &api.EnvoyFilter_EnvoyConfigObjectMatch{ObjectTypes: &api.EnvoyFilter_EnvoyConfigObjectMatch_Listener{
		Listener: &api.EnvoyFilter_ListenerMatch{FilterChain: &api.EnvoyFilter_ListenerMatch_FilterChainMatch{Sni: "a.example.com"}},
	}}
	return map[string]*federation.Object{
		"NOPE": filterOf("broken", api.EnvoyFilter_VIRTUAL_HOST, api.EnvoyFilter_Patch_MERGE, host, map[string]any{
			"request_headers_to_add": []any{map[string]any{"header": map[string]any{"key": "x", "value": "%NOPE()%"}}},
		}),
		"script load error": filterOf("broken", api.EnvoyFilter_HTTP_FILTER, api.EnvoyFilter_Patch_INSERT_FIRST, chain, map[string]any{
			"name": "envoy.filters.http.lua",
			"typed_config": map[string]any{
				"@type":               "type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua",
				"default_source_code": map[string]any{"inline_string": "this is not Lua"},
			},
		}),
	}
}

// TestK34WhatAnEnvoyFilterBreaksStaysWithIt: a real Envoy refuses an EnvoyFilter's change of one
// tenant's virtual host, or of its filter chain. The EnvoyFilter has Envoy's words, what the tenant had
// stays in use, and the other tenant's changes arrive.
func TestK34WhatAnEnvoyFilterBreaksStaysWithIt(t *testing.T) {
	e := newEdge(t)
	e.rotate("one", "a.example.com", "b.example.com")
	e.writer.Update(setObjects(enablingFilters("shop")))
	e.objects(tenantGateway("a", simpleTLS()), tenantGateway("b", simpleTLS()), answering("a", "a0"), answering("b", "b0"))
	e.await("a to answer", e.answered("a", "a0"))
	e.await("b to answer", e.answered("b", "b0"))
	e.await("everything to be accepted", e.inSync)
	round := 0
	for words, broken := range brokenFilters() {
		round++
		e.writer.Update(setObjects(broken))
		e.await(words+": the refusal to be shown", func() error {
			reports := slices.Collect(e.server.Object(e.snapshots.Latest(), e.fleet.Latest(), broken.Key).Proxies())
			if len(reports) != 1 || !strings.Contains(reports[0].Error, words) || !strings.Contains(reports[0].Part, "a.example.com") {
				return fmt.Errorf("the status of the EnvoyFilter is %+v", reports)
			}
			return e.stands(broken.Key, fleet.Rejected)()
		})
		next := fmt.Sprintf("b%d", round)
		e.objects(answering("b", next))
		e.await(words+": the change of b", e.answered("b", next))
		e.await(words+": b to be well", e.stands(tenantKey("VirtualService", "b"), fleet.Accepted))
		if err := e.answered("a", "a0")(); err != nil {
			t.Errorf("%s: what was accepted last is not in force: %v", words, err)
		}
		e.writer.Update(federation.Edit{Objects: federation.Delta[federation.ObjectKey,
			*federation.Object]{Gone: []federation.ObjectKey{broken.Key}}})
		e.await(words+": a to be well without it", e.stands(tenantKey("VirtualService", "a"), fleet.Accepted))
	}
}
