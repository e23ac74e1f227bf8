package edge

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"isthmus.dev/isthmus/xds/envoy/resource"
)

// ofListener reports whether the server is a listener of the Gateway API.
func (s *Server) ofListener() bool { return s.object.Origin.Field != "" }

// refuseElsewhere has requests that came by a connection for another server of the port refused with 421, as the
// Gateway API wants (ADR 178); nil: there is none. Names of the configuration's own servers without a route have
// 404 in spite of that.
func (p *listenPort) refuseElsewhere(routes string, hosts map[string]*host) *routev3.VirtualHost {
	own, others := p.split(routes)
	domains := slices.DeleteFunc(withoutCovered(others, own), func(name string) bool { return hosts[name] != nil })
	if len(own) == 0 || len(domains) == 0 {
		return nil
	}
	for _, name := range own {
		if hosts[name] == nil {
			hosts[name] = &host{own: true}
		}
	}
	return &routev3.VirtualHost{
		Name: fmt.Sprintf("misdirected:%d", p.number), Domains: domains,
		Routes: []*routev3.Route{{Match: resource.AnyPath(), Action: resource.Refuse(http.StatusMisdirectedRequest,
			"the connection was opened for another listener: open one for this host")}},
	}
}

// split are the names of the listeners that have the route configuration, and those of the other servers of
// the port, sorted. Only ports that end TLS have any.
func (p *listenPort) split(routes string) (own, others []string) {
	for _, name := range slices.Sorted(maps.Keys(p.owners)) {
		if s := p.owners[name]; s.ofListener() && s.https() && p.routesName(s) == routes {
			own = append(own, name)
		} else {
			others = append(others, name)
		}
	}
	return own, others
}

// withoutCovered excludes names that a wider one of them covers, where none of the own names comes between.
func withoutCovered(names, own []string) []string {
	wild := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !strings.HasPrefix(name, "*") })
	return slices.DeleteFunc(names, func(name string) bool {
		return slices.ContainsFunc(wild, func(wider string) bool {
			return wider != name && resource.Covers(wider, name) && !slices.ContainsFunc(own, func(between string) bool {
				return resource.Covers(between, name) && resource.Covers(wider, between)
			})
		})
	})
}
