package route

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	dynamicv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/dynamic_forward_proxy/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"isthmus.dev/isthmus/xds/envoy/destinationrule"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// A dynamic target resolves the name for which the caller asks, and Envoy would resolve any: the
// caller says the host and the port. So what leads to it says which it takes: the names of the
// service's wildcard, at the port of the service (ADR 163).

// anyLabels begins the expression for the hosts of a wildcard.
const anyLabels = `(?i)[a-z0-9_-]+(\.[a-z0-9_-]+)*`

// hosts is an expression for the hosts of requests that the target takes. A host without a port
// means 80, or 443 in TLS: Envoy connects to that port.
func (t target) hosts(v *facet.View) string {
	implied, port := uint16(80), fmt.Sprintf(":%d", t.Port.Number)
	if destinationrule.IsTLS(v.TrafficPolicyFor(t.Service, t.Port.Number, t.subset).GetTls()) {
		implied = 443
	}
	if t.Port.Number == implied {
		port = "(" + port + ")?"
	}
	suffix := strings.TrimPrefix(string(t.Service.Key.Hostname), "*")
	return anyLabels + regexp.QuoteMeta(suffix) + port
}

// dynamic are those of the targets that resolve names.
func dynamic(targets []target) []target {
	return slices.DeleteFunc(slices.Clone(targets), func(t target) bool { return !t.Service.IsDynamic() })
}

// guarded are the route to dynamic targets for the hosts that they take, and the refusal of
// requests for others.
func guarded(v *facet.View, route *routev3.Route, targets []target) []*routev3.Route {
	resolve, action := dynamic(targets), route.GetRoute()
	if len(resolve) == 0 || action == nil {
		return []*routev3.Route{route}
	}
	if host := action.GetHostRewriteLiteral(); host != "" {
		askFor(route, host)
		return []*routev3.Route{route}
	}
	refused := &routev3.Route{
		Name: route.GetName(), Match: proto.CloneOf(route.GetMatch()), Metadata: route.GetMetadata(),
		Action: misdirected(resolve),
	}
	for _, t := range resolve {
		route.Match.Headers = append(route.Match.Headers, authority(t.hosts(v)))
	}
	return []*routev3.Route{route, refused}
}

// refuseRewrite refuses all requests of a route that changes their host to one that a target does
// not take.
func (r *Rule) refuseRewrite(route *routev3.Route, targets []target) {
	host := route.GetRoute().GetHostRewriteLiteral()
	for _, t := range dynamic(targets) {
		if takes, err := regexp.MatchString("^"+t.hosts(r.View)+"$", host); host == "" || takes && err == nil {
			continue
		}
		r.View.LeaveOut(r.missing(fmt.Sprintf("the destination %s does not take requests for %s, to which the route changes the host",
			t.Service.Key.Hostname, host)))
		route.Action = misdirected(targets)
		return
	}
}

// askFor has the name resolved to which the route changes the host. Envoy's router changes hosts
// when names have been resolved already.
func askFor(route *routev3.Route, host string) {
	if route.TypedPerFilterConfig == nil {
		route.TypedPerFilterConfig = map[string]*anypb.Any{}
	}
	route.TypedPerFilterConfig[resource.DynamicHTTPFilter] = resource.Any(&dynamicv3.PerRouteConfig{
		HostRewriteSpecifier: &dynamicv3.PerRouteConfig_HostRewriteLiteral{HostRewriteLiteral: host},
	})
}

func authority(hosts string) *routev3.HeaderMatcher {
	return &routev3.HeaderMatcher{
		Name: ":authority",
		HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{StringMatch: &matcherv3.StringMatcher{
			MatchPattern: &matcherv3.StringMatcher_SafeRegex{SafeRegex: &matcherv3.RegexMatcher{Regex: hosts}},
		}},
	}
}

func misdirected(targets []target) *routev3.Route_DirectResponse {
	var taken []string
	for _, t := range targets {
		taken = append(taken, fmt.Sprintf("%s:%d", t.Service.Key.Hostname, t.Port.Number))
	}
	return resource.Refuse(http.StatusMisdirectedRequest, "the host of the request is not one of "+strings.Join(taken, " and "))
}

// unresolved says why nothing would resolve names for the target; empty: something does. Sidecars
// resolve hosts where a service with names to resolve has the port.
func (r *Rule) unresolved(t target) string {
	host, v := t.Service.Key.Hostname, r.View
	switch {
	case !t.Service.IsDynamic():
	case v.Facet.GRPC:
		return fmt.Sprintf("the destination %s is a wildcard, of which gRPC clients resolve no names", host)
	case r.byPort && !facet.ResolvesNames(v, r.Port):
		return fmt.Sprintf("the destination %s resolves hosts of requests, which sidecars do on its own ports only, and not on port %d",
			host, r.Port)
	}
	return ""
}

// askedFor says why connections for the servers cannot go to a dynamic target; empty: they can.
// Where nothing says for which server connections are, there are none.
func (t target) askedFor(servers []string) string {
	wildcard := string(t.Service.Key.Hostname)
	if len(servers) == 0 {
		return fmt.Sprintf("the destination %s resolves the server name of TLS, and connections of this route have none", wildcard)
	}
	for _, name := range servers {
		if !resource.Covers(wildcard, name) {
			return fmt.Sprintf("the destination %s is not for connections to %s", wildcard, name)
		}
	}
	return ""
}

// resolving puts in front of the filters what resolves the names that connections to the target
// ask for.
func resolving(v *facet.View, t *target, filters []*listenerv3.Filter) []*listenerv3.Filter {
	if t == nil || !t.Service.IsDynamic() {
		return filters
	}
	names := resource.DynamicNames(v.Reader.Settings().Addresses, v.Facet.Lookup)
	return append([]*listenerv3.Filter{resource.DynamicSNI(names, t.Port.Number)}, filters...)
}
