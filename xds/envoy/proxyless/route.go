package proxyless

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/route"
	"isthmus.dev/isthmus/xds/envoy/service"
)

// Routes builds the routes to one host and port. A client is there for one
// target only, so that its virtual host takes every name.
func Routes(v *facet.View, name string) proto.Message {
	host, number, ok := resource.ParseTarget(name)
	if !ok {
		return nil
	}
	h, losers := targetHost(v, federation.Hostname(host), number)
	if h == nil {
		return nil
	}
	for _, s := range losers {
		v.LeaveOut(service.Taken(v, service.ServedPort{Service: h.Service}, s))
	}
	routes := route.HostRoutes(v, h)
	v.Made(name, h.Service)
	if len(routes) == 0 {
		return nil
	}
	known := forGRPC(v, name, h, routes)
	if len(known) == 0 { // none of them is for gRPC, and the service is not reached without
		known = []*routev3.Route{{Match: resource.AnyPath(), Action: resource.Refuse(http.StatusNotFound, "no route is for gRPC clients")}}
	}
	return resource.NewRoutes(name, []*routev3.VirtualHost{{Name: name, Domains: []string{name, "*"}, Routes: known}})
}

// targetHost is the host at the port: a service, and those that have the same
// name and are excluded for it, or a host of which only a VirtualService may
// speak. Nil where it can be neither.
func targetHost(v *facet.View, host federation.Hostname, number uint16) (h *route.Host, losers []*federation.Service) {
	if strings.HasPrefix(string(host), "*") {
		return nil, nil
	}
	services := v.Reader.ByHostname(host)
	owner, losers := service.FirstOwner(services, number, v.Facet.OwnNamespace(), v.Facet.Covers)
	if owner.Service == nil && (number != route.RuledPort || slices.ContainsFunc(services, v.Sees) || !isRuled(v, host)) {
		return nil, nil
	}
	return &route.Host{Host: host, Number: number, Service: owner.Service}, losers
}

// isRuled reports whether a VirtualService has the host by its name.
func isRuled(v *facet.View, host federation.Hostname) bool {
	return resource.IsDomain(string(host)) && len(route.RulesNamed(v, string(host), host)) > 0
}

// hasRoutes reports whether the host has routes, and does not say what of them is
// excluded.
func hasRoutes(v *facet.View, h *route.Host) bool {
	aside := facet.Open(v.Facet, v.Reader)
	return len(route.HostRoutes(aside, h)) > 0
}

// forGRPC reduces routes for Envoy to what a gRPC client carries out, and reports
// what it ignores. Routes that no gRPC request matches are excluded.
func forGRPC(v *facet.View, name string, h *route.Host, routes []*routev3.Route) []*routev3.Route {
	var known []*routev3.Route
	for i, route := range routes {
		g := grpcRoute{View: v, cause: h.RuledBy, service: h.ServiceKey(), where: fmt.Sprintf("gRPC clients of %s: route %d", name, i)}
		if route.GetName() != "" {
			g.where += fmt.Sprintf(" (%s)", route.GetName())
		}
		known = append(known, g.adapt(route)...)
	}
	return known
}

// grpcRoute is one route on its way.
type grpcRoute struct {
	View    *facet.View
	where   string
	cause   federation.ObjectKey // VirtualService of which it is; zero: none
	service federation.ServiceKey
}

func (g grpcRoute) ignored(what, why string) {
	g.View.LeaveOut(resource.Reason{
		Code: resource.ReasonProxyless, Cause: g.cause, Service: g.service,
		Message: g.where + ": " + what + ": " + why,
	})
}

// adapt makes one route, or several where one cannot say it, or none.
func (g grpcRoute) adapt(in *routev3.Route) []*routev3.Route {
	matches := g.matches(in.GetMatch())
	if len(matches) == 0 {
		return nil
	}
	g.changes(in)
	var filters map[string]*anypb.Any
	if fault := in.GetTypedPerFilterConfig()[resource.FaultFilter]; fault != nil {
		filters = map[string]*anypb.Any{resource.FaultFilter: fault}
	}
	routes := make([]*routev3.Route, len(matches))
	for i, m := range matches {
		routes[i] = &routev3.Route{Name: in.GetName(), Match: m, Action: in.GetAction(), TypedPerFilterConfig: filters}
	}
	if forward := in.GetRoute(); forward != nil {
		action := &routev3.Route_Route{Route: g.action(forward)}
		for _, r := range routes {
			r.Action = action
		}
	} else if in.GetDirectResponse().GetStatus() != http.StatusServiceUnavailable { // gRPC answers the same
		g.ignored("a redirect or direct response", "the call fails as UNAVAILABLE")
	}
	return routes
}

// changes reports what a proxy would change and a gRPC client leaves as it is.
func (g grpcRoute) changes(in *routev3.Route) {
	changed := len(in.GetRequestHeadersToAdd()) + len(in.GetRequestHeadersToRemove()) + len(in.GetResponseHeadersToAdd()) +
		len(in.GetResponseHeadersToRemove())
	for _, w := range in.GetRoute().GetWeightedClusters().GetClusters() {
		changed += len(w.GetRequestHeadersToAdd()) + len(w.GetRequestHeadersToRemove()) + len(w.GetResponseHeadersToAdd()) +
			len(w.GetResponseHeadersToRemove())
	}
	if changed > 0 {
		g.ignored("headers", "they are neither added nor removed")
	}
	if in.GetTypedPerFilterConfig()[resource.CORSFilter] != nil {
		g.ignored("corsPolicy", "no browser is there")
	}
}

// maxAbsentHeaders bounds the headers of one match whose absence needs a route
// of its own: each doubles the routes.
const maxAbsentHeaders = 4

// matches are those of which one must be true; none where no gRPC request can
// match. gRPC knows paths and the headers of the call: a query or a pseudo
// header is none.
func (g grpcRoute) matches(in *routev3.RouteMatch) []*routev3.RouteMatch {
	if len(in.GetQueryParameters()) > 0 {
		g.ignored("a match on queryParams", "a call has no query: the route is excluded")
		return nil
	}
	base := &routev3.RouteMatch{
		PathSpecifier: in.GetPathSpecifier(), CaseSensitive: in.GetCaseSensitive(),
		RuntimeFraction: in.GetRuntimeFraction(),
	}
	all := []*routev3.RouteMatch{base}
	doubled := 0
	for _, h := range in.GetHeaders() {
		if strings.HasPrefix(h.GetName(), ":") {
			if h.GetName() == ":method" && matchesPost(h) {
				continue // every call is a POST
			}
			g.ignored("a match on "+h.GetName()[1:], "no call has it: the route is excluded")
			return nil
		}
		if strings.HasSuffix(strings.ToLower(h.GetName()), "-bin") {
			if h.GetInvertMatch() {
				continue // for gRPC no call has it
			}
			g.ignored("a match on the header "+h.GetName(), "binary headers are not looked at: the route is excluded")
			return nil
		}
		if !h.GetInvertMatch() || !h.GetTreatMissingHeaderAsEmpty() {
			all = withHeader(all, h)
			continue
		}
		doubled++
		if doubled > maxAbsentHeaders {
			g.ignored("withoutHeaders", fmt.Sprintf("more than %d headers: the route is excluded", maxAbsentHeaders))
			return nil
		}
		other := &routev3.HeaderMatcher{Name: h.GetName(), InvertMatch: true, HeaderMatchSpecifier: h.GetHeaderMatchSpecifier()}
		all = append(withHeader(all, absent(h.GetName())), withHeader(all, other)...)
	}
	return all
}

func matchesPost(h *routev3.HeaderMatcher) bool {
	m := h.GetStringMatch()
	is := h.GetPresentMatch() || m.GetExact() == http.MethodPost || m.GetPrefix() != "" && strings.HasPrefix(http.MethodPost, m.GetPrefix())
	if re := m.GetSafeRegex(); re != nil {
		is = wholeMatch(re.GetRegex(), http.MethodPost)
	}
	return is != h.GetInvertMatch()
}

// absent is true where the header is not there.
func absent(name string) *routev3.HeaderMatcher {
	return &routev3.HeaderMatcher{Name: name, InvertMatch: true, HeaderMatchSpecifier: &routev3.HeaderMatcher_PresentMatch{PresentMatch: true}}
}

// withHeader demands the header of each of the matches, which stay as they are.
func withHeader(matches []*routev3.RouteMatch, h *routev3.HeaderMatcher) []*routev3.RouteMatch {
	out := make([]*routev3.RouteMatch, len(matches))
	for i, m := range matches {
		out[i] = &routev3.RouteMatch{
			PathSpecifier: m.GetPathSpecifier(), CaseSensitive: m.GetCaseSensitive(), RuntimeFraction: m.GetRuntimeFraction(),
			Headers: append(slices.Clone(m.GetHeaders()), h),
		}
	}
	return out
}
