package validation

import (
	"fmt"
	"maps"
	"slices"

	api "istio.io/api/security/v1beta1"

	"isthmus.dev/isthmus/federation/config/schema"
)

var peerAuthenticationRules = []rule[*api.PeerAuthentication]{
	{"portLevelMtls", schema.Forbidden, func(p *api.PeerAuthentication) string {
		return when(len(p.GetPortLevelMtls()) > 0 && len(p.GetSelector().GetMatchLabels()) == 0,
			"ports belong to workloads: write selector.matchLabels")
	}},
}

// PeerAuthentication checks a spec of the kind.
func PeerAuthentication(_ string, p *api.PeerAuthentication) []Problem {
	at := spec
	found := apply(at, p, peerAuthenticationRules)
	found = append(found, optional(at.field("selector"), p.GetSelector(), selector)...)
	for _, number := range slices.Sorted(maps.Keys(p.GetPortLevelMtls())) {
		found = append(found, invalid(at.field("portLevelMtls").entry(fmt.Sprint(number)), port(number))...)
	}
	return found
}
