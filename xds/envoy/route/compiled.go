package route

import (
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"

	"isthmus.dev/isthmus/xds/envoy/resource"
)

// Compiled is a route of a VirtualService.
type Compiled struct {
	*routev3.Route
	// TakesAll: the match of the VirtualService accepts every request. The route may take fewer,
	// where a dynamic target takes the names of a wildcard alone.
	TakesAll bool
}

// Messages are the routes as Envoy gets them.
func Messages(routes []Compiled) []*routev3.Route {
	all := make([]*routev3.Route, len(routes))
	for i, r := range routes {
		all[i] = r.Route
	}
	return all
}

// takesEverything reports whether all requests match, by a prefix or an expression.
func takesEverything(match *routev3.RouteMatch) bool {
	if match.GetSafeRegex().GetRegex() == ".*" || match.GetCaseSensitive() != nil && match.GetPrefix() == "/" {
		match = proto.CloneOf(match)
		match.PathSpecifier, match.CaseSensitive = resource.AnyPath().GetPathSpecifier(), nil
	}
	return proto.Equal(match, resource.AnyPath())
}
