package validation

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	api "istio.io/api/networking/v1alpha3"

	"isthmus.dev/isthmus/federation/config/schema"
)

// unreachable reports routes after one that takes everything, and matches that
// an earlier route has, too. The matches of a route are alternatives.
func unreachable[M proto.Message, R interface{ GetMatch() []M }](at path, routes []R) []Problem {
	if len(routes) < 2 {
		return nil // matches of a route are alternatives
	}
	all := slices.IndexFunc(routes, func(r R) bool { return len(r.GetMatch()) == 0 })
	var found []Problem
	first := map[string]int{} // route by match: thousands of routes are not compared one by one
	for i, r := range routes {
		if all >= 0 && i > all {
			found = append(found, problem(at.item(i), NoEffect,
				when(true, "route %d has no match and takes everything: move this route before it", all))...)
			continue
		}
		for j, match := range r.GetMatch() {
			key := matchKey(match)
			k, is := first[key]
			if !is {
				first[key] = i
			}
			found = append(found, problem(at.item(i).field("match").item(j), NoEffect,
				when(is && k < i, "route %d has the same match and comes first: remove one of the two", k))...)
		}
	}
	return found
}

// matchKey is the same for matches that say the same of requests; names are for statistics.
func matchKey(m proto.Message) string {
	key, _ := proto.MarshalOptions{Deterministic: true}.Marshal(withoutName(m)) // it was read, so it can be written
	return string(key)
}

func withoutName(m proto.Message) proto.Message {
	match, is := m.(*api.HTTPMatchRequest)
	if !is || match.GetName() == "" && match.GetStatPrefix() == "" {
		return m
	}
	unnamed, _ := proto.Clone(match).(*api.HTTPMatchRequest)
	unnamed.Name, unnamed.StatPrefix = "", ""
	return unnamed
}

// coveredHosts reports hosts that another one of the list matches, too.
func coveredHosts(at path, hosts []string) []Problem {
	return each(at, hosts, func(at path, host string) []Problem {
		i := slices.IndexFunc(hosts, func(other string) bool {
			return other != host && strings.HasPrefix(other, "*") && coversName(other, host)
		})
		if i < 0 {
			return nil
		}
		return problem(at, schema.DuplicateValue, when(true, "%q covers %q: remove one of the two", hosts[i], host))
	})
}

// claimsOfSidecars reports matches of a token's claims, which gateways alone verify.
func claimsOfSidecars(at path, v *api.VirtualService) []Problem {
	if !forSidecars(v) || isDelegate(v) {
		return nil
	}
	const message = "claims of tokens are matched at gateways: remove it, or write gateways without mesh"
	claim := func(at path, name string, _ *api.StringMatch) []Problem {
		return problem(at, schema.Forbidden, when(isClaim(name), message))
	}
	return each(at.field("http"), v.GetHttp(), func(at path, r *api.HTTPRoute) []Problem {
		return each(at.field("match"), r.GetMatch(), func(at path, m *api.HTTPMatchRequest) []Problem {
			return append(entries(at.field("headers"), m.GetHeaders(), claim), entries(at.field("withoutHeaders"), m.GetWithoutHeaders(), claim)...)
		})
	})
}

// isClaim tells the name of a claim, @request.auth.claims.NAME or
// @request.auth.claims[NAME], from that of a header.
func isClaim(name string) bool {
	rest, is := strings.CutPrefix(strings.ToLower(name), "@request.auth.claims")
	return is && len(rest) > 1 && (rest[0] == '.' || rest[0] == '[' && strings.HasSuffix(rest, "]"))
}
