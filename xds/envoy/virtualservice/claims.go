package virtualservice

import (
	"maps"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/xds/envoy/resource"
)

// The beginnings, in any case of letters, of the names by which matches mean a verified JWT rather than
// a header, and its claims.
const (
	tokenPrefix = "@request.auth."
	claimPrefix = tokenPrefix + "claims"
)

func isClaim(name string) bool { return strings.HasPrefix(strings.ToLower(name), tokenPrefix) }

// Claims are the names of claims among those of headers, sorted.
func Claims(headers map[string]*networking.StringMatch) []string {
	names := slices.Sorted(maps.Keys(headers))
	return slices.DeleteFunc(names, func(name string) bool { return !isClaim(name) })
}

// HasClaims reports whether the match depends on claims of a verified JWT.
func HasClaims(in *networking.HTTPMatchRequest) bool {
	return len(Claims(in.GetHeaders()))+len(Claims(in.GetWithoutHeaders())) > 0
}

// ClaimPath reads the path of a claim: @request.auth.claims.A.B or @request.auth.claims[A][B].
func ClaimPath(name string) ([]string, bool) {
	if !strings.HasPrefix(strings.ToLower(name), claimPrefix) {
		return nil, false
	}
	rest := name[len(claimPrefix):]
	dotted, ok := strings.CutPrefix(rest, ".")
	if !ok {
		return resource.ClaimPath(rest)
	}
	path := strings.Split(dotted, ".")
	return path, !slices.ContainsFunc(path, func(part string) bool { return part == "" || strings.ContainsAny(part, "[]") })
}

// setClaimMatches adds the conditions about claims; false: they hold for no request.
func setClaimMatches(m *routev3.RouteMatch, in *networking.HTTPMatchRequest, verified bool) bool {
	if !HasClaims(in) {
		return true
	}
	for _, side := range []struct {
		headers map[string]*networking.StringMatch
		without bool
	}{{in.GetHeaders(), false}, {in.GetWithoutHeaders(), true}} {
		for _, name := range Claims(side.headers) {
			path, ok := ClaimPath(name)
			if !ok || !verified {
				return false
			}
			match, err := claimMatch(path, side.headers[name])
			if err != nil {
				return false
			}
			match.Invert = side.without
			m.DynamicMetadata = append(m.DynamicMetadata, match)
		}
	}
	return true
}

// claimMatch matches a claim that is a text, or a list with one.
func claimMatch(path []string, in *networking.StringMatch) (*matcherv3.MetadataMatcher, error) {
	value, err := stringMatcher(in)
	match := resource.ClaimMatcher(value, path...)
	if anyValue(in) {
		match.Value = &matcherv3.ValueMatcher{MatchPattern: &matcherv3.ValueMatcher_PresentMatch{PresentMatch: true}}
		err = nil
	}
	return match, err
}
