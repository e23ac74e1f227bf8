package edge

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"isthmus.dev/isthmus/xds/envoy/gateway"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// ofListener reports whether the server is a listener of the Gateway API: what is derived of these, and
// nothing else, is for the proxies of one namespace only.
func (s *Server) ofListener() bool { return s.object.Credentials.Only }

// refuseElsewhere has requests that came by a connection for another server of the port refused with 421, as the
// Gateway API wants (ADR 178). Names of the server's own without a route have 404 in spite of that.
func (p *listenPort) refuseElsewhere(s *Server, hosts map[string]*host) *routev3.VirtualHost {
	if p.protocol != gateway.ServesTLS || !s.ofListener() {
		return nil
	}
	domains := slices.DeleteFunc(p.elsewhere(s), func(name string) bool { return hosts[name] != nil })
	if len(domains) == 0 {
		return nil
	}
	for _, own := range s.names {
		if hosts[own] == nil {
			hosts[own] = &host{own: true}
		}
	}
	return &routev3.VirtualHost{
		Name: fmt.Sprintf("misdirected:%d", p.number), Domains: domains,
		Routes: []*routev3.Route{{Match: resource.AnyPath(), Action: resource.Refuse(http.StatusMisdirectedRequest,
			"the connection was opened for another listener: open one for this host")}},
	}
}

// elsewhere are the names of the other servers of the port, sorted. One that a wider one of them covers is left
// out where no name of this server comes between.
func (p *listenPort) elsewhere(s *Server) (names []string) {
	var wild []string
	for name, owner := range p.owners {
		if owner != s {
			names = append(names, name)
			if strings.HasPrefix(name, "*") {
				wild = append(wild, name)
			}
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return slices.ContainsFunc(wild, func(wider string) bool {
			return wider != name && resource.Covers(wider, name) && !slices.ContainsFunc(s.names, func(own string) bool {
				return resource.Covers(own, name) && resource.Covers(wider, own)
			})
		})
	})
	slices.Sort(names)
	return names
}
