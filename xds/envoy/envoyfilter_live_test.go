package envoy_test

import (
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
)

const patchingFilters = `kind: MeshSettings
metadata: {name: default}
spec: {envoyFilters: {namespaces: [shop]}}
---
kind: EnvoyFilter
metadata: {name: answers, namespace: shop}
spec:
  workloadSelector: {labels: {app: web}}
  configPatches:
  - applyTo: HTTP_FILTER
    match: {context: SIDECAR_INBOUND, listener: {filterChain: {filter: {name: envoy.filters.network.http_connection_manager, subFilter: {name: envoy.filters.http.router}}}}}
    patch:
      operation: INSERT_BEFORE
      value:
        name: envoy.filters.http.lua
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua
          default_source_code: {inline_string: "function envoy_on_response(h) h:headers():add('x-lua', 'said') end"}
  - applyTo: HTTP_ROUTE
    match: {context: SIDECAR_INBOUND, routeConfiguration: {name: "inbound|8080||"}}
    patch: {operation: INSERT_FIRST, value: {match: {path: /patched}, direct_response: {status: 418}}}
---
kind: EnvoyFilter
metadata: {name: limit, namespace: shop}
spec:
  workloadSelector: {labels: {app: web}}
  configPatches:
  - applyTo: HTTP_FILTER
    match: {context: SIDECAR_INBOUND, listener: {portNumber: 8080, filterChain: {filter: {name: envoy.filters.network.http_connection_manager}}}}
    patch:
      operation: INSERT_FIRST
      value:
        name: envoy.filters.http.local_ratelimit
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit
          stat_prefix: limit
          token_bucket: {max_tokens: 2, tokens_per_fill: 2, fill_interval: 3600s}
          filter_enabled: {runtime_key: a, default_value: {numerator: 100, denominator: HUNDRED}}
          filter_enforced: {runtime_key: b, default_value: {numerator: 100, denominator: HUNDRED}}`

// TestK33RealProxiesDoWhatPatchesSay: a real sidecar adds a header by Lua, answers by a route that was
// added, and lets two requests pass; a proxy that no EnvoyFilter selects does none of it.
func TestK33RealProxiesDoWhatPatchesSay(t *testing.T) {
	network, authority := testbed.NewNetwork(t, "pods", "10.7.0.0/24"), testbed.NewAuthority(t, "mesh")
	endpoint := at("10.7.0.2", 8080)
	endpoint.TLSMode, endpoint.ServiceAccount = federation.MutualTLS, "shop/web"
	shard := web(endpoint)
	shard.VIPs = vips("10.96.0.1/32")
	w := newFixture().attach("c1", "").say("c1", webKey, shard).config(t, patchingFilters)
	server, _ := proxied(t, network, authority, "10.7.0.2", "web", w.snapshot)
	testbed.StartEcho(t, testbed.EchoOptions{Name: "web", Namespace: server, HTTP: []int{8080}})
	front, _ := proxied(t, network, authority, "10.7.0.9", "front", w.snapshot)
	for i, want := range []struct {
		path   string
		status int
		lua    string
	}{{"/", 200, "said"}, {"/patched", 418, "said"}, {"/", 429, ""}} {
		got := front.Get("http://10.96.0.1" + want.path)
		if got.Err != nil || got.Status != want.status || got.Header.Get("x-lua") != want.lua && want.lua != "" {
			t.Errorf("request %d: %d, x-lua %q, %v; want %d", i+1, got.Status, got.Header.Get("x-lua"), got.Err, want.status)
		}
	}
}
