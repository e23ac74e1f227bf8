package authentication

import (
	"maps"
	"slices"
	"strings"

	rulesv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	jwtv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	"isthmus.dev/isthmus/xds/envoy/resource"
)

const mutationFilter = "envoy.filters.http.header_mutation"

// withoutForged is the filter that removes from requests the headers that only verified tokens may set.
// Envoy's filter for tokens removes those of the providers that it asks, and it stops asking at the
// first valid token.
func withoutForged(c *jwtv3.JwtAuthentication) []*hcmv3.HttpFilter {
	var removed []*rulesv3.HeaderMutation
	for _, name := range outputs(c) {
		removed = append(removed, &rulesv3.HeaderMutation{Action: &rulesv3.HeaderMutation_Remove{Remove: name}})
	}
	if len(removed) == 0 {
		return nil
	}
	mutations := &mutationv3.Mutations{RequestMutations: removed}
	return []*hcmv3.HttpFilter{resource.InHTTP(mutationFilter, &mutationv3.HeaderMutation{Mutations: mutations})}
}

// outputs are the headers that providers set and in which none looks for tokens, sorted.
func outputs(c *jwtv3.JwtAuthentication) []string {
	set, read := map[string]bool{}, map[string]bool{}
	for _, p := range c.GetProviders() {
		set[strings.ToLower(p.GetForwardPayloadHeader())] = true
		for _, claim := range p.GetClaimToHeaders() {
			set[strings.ToLower(claim.GetHeaderName())] = true
		}
		for _, from := range p.GetFromHeaders() {
			read[strings.ToLower(from.GetName())] = true
		}
		if len(p.GetFromHeaders())+len(p.GetFromParams())+len(p.GetFromCookies()) == 0 {
			read["authorization"] = true
		}
		if len(p.GetFromCookies()) > 0 {
			read["cookie"] = true
		}
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(set)), func(name string) bool {
		return name == "" || name == "host" || strings.HasPrefix(name, ":") || read[name]
	})
}
