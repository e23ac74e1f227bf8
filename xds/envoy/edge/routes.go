package edge

import (
	"fmt"
	"maps"
	"net/http"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"

	"isthmus.dev/isthmus/xds/envoy/check"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/gateway"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/route"
)

// host is a virtual host of a gateway in the making.
type host struct {
	redirect bool // plaintext requests are sent to https
	own      bool // it answers 404 where it has no route
	rules    []*route.Rule
}

// Routes builds one route configuration of a gateway: that of all servers
// of a plaintext port, or of one server that ends TLS.
func Routes(v *facet.View, name string) proto.Message {
	var port *listenPort
	var offered []*corev3.HeaderValueOption
	hosts := map[string]*host{}
	for _, p := range ports(v) {
		for _, s := range p.servers {
			if p.routesName(s) == name && s.routed(p.protocol) {
				port = p
				addHosts(v, hosts, p, s)
				if p.quicAt(s) != 0 {
					offered = []*corev3.HeaderValueOption{altSvc(s.port())}
				}
			}
		}
	}
	if port == nil {
		return nil
	}
	var all []*routev3.VirtualHost
	if misdirected := port.refuseElsewhere(name, hosts); misdirected != nil {
		all = append(all, misdirected)
	}
	for _, domain := range slices.Sorted(maps.Keys(hosts)) {
		if host := virtualHost(v, domain, hosts[domain], port); host != nil {
			all = append(all, host)
		}
	}
	c := resource.NewRoutes(name, all)
	c.ResponseHeadersToAdd = offered
	c.IgnorePortInHostMatching = true // callers may come through another port that is forwarded to this one
	return c
}

// addHosts adds what the server has: hosts of the VirtualServices that bind to
// it, and those of its own that it redirects.
func addHosts(v *facet.View, hosts map[string]*host, p *listenPort, s *Server) {
	redirect := p.protocol == gateway.ServesHTTP && s.spec.GetTls().GetHttpsRedirect()
	at := func(name string) *host {
		if hosts[name] == nil {
			hosts[name] = &host{}
		}
		hosts[name].redirect = hosts[name].redirect || redirect
		return hosts[name]
	}
	for _, r := range bound(v, p, s) {
		for _, name := range r.hosts {
			at(name).add(r.Rule)
		}
	}
	if redirect {
		for _, h := range s.hosts {
			at(h.Name)
		}
	}
}

// add adds a VirtualService; it may be bound by several Gateways.
func (h *host) add(r route.Rule) {
	for _, known := range h.rules {
		if known.Object == r.Object {
			known.Gateways = append(known.Gateways, r.Gateways...)
			return
		}
	}
	h.rules = append(h.rules, &r)
}

// virtualHost joins the routes of all VirtualServices of a host, the oldest
// first; routes that take everything come last. Nil where there is none.
func virtualHost(v *facet.View, domain string, h *host, p *listenPort) *routev3.VirtualHost {
	slices.SortFunc(h.rules, func(r, s *route.Rule) int { return r.Object.CompareAge(s.Object) })
	var routes, last []*routev3.Route
	name := fmt.Sprintf("%s:%d", domain, p.number)
	for _, r := range h.rules {
		found := routesOf(v, r, domain)
		r.NoteCauses(name)
		for _, made := range found {
			if made.TakesAll {
				last = append(last, made.Route)
			} else {
				routes = append(routes, made.Route)
			}
		}
	}
	v.Made(name, nil)
	routes = append(routes, last...)
	if len(routes) == 0 && !h.redirect && !h.own {
		return nil
	}
	host := &routev3.VirtualHost{Name: name, Domains: []string{domain}, Routes: routes}
	if h.redirect {
		host.RequireTls = routev3.VirtualHost_ALL
	}
	if len(routes) == 0 {
		host.Routes = []*routev3.Route{{Match: resource.AnyPath(), Action: resource.Refuse(http.StatusNotFound,
			"no VirtualService has a route for this")}}
	}
	return host
}

// routesOf are the routes of one VirtualService; none where it cannot be
// expressed.
func routesOf(v *facet.View, r *route.Rule, domain string) []route.Compiled {
	routes, err := r.Routes()
	if err == nil && len(routes) > 0 {
		err = check.Part(&routev3.VirtualHost{Name: "n", Domains: []string{"d"}, Routes: route.Messages(routes)})
	}
	if err != nil {
		v.LeaveOut(resource.Reason{
			Code: resource.ReasonInvalidRule, Cause: r.Object.Subject(),
			Message: fmt.Sprintf("%s is excluded for %s:%d: %v", r.Object.SubjectTitle(), domain, r.Port, err),
		})
		return nil
	}
	return routes
}
