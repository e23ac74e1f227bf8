package envoy

import (
	"fmt"
	"maps"
	"net/http"
	"slices"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"

	"isthmus.dev/isthmus/xds/envoy/check"
	"isthmus.dev/isthmus/xds/envoy/gateway"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// gatewayHost is a virtual host of a gateway in the making.
type gatewayHost struct {
	redirect bool // plaintext requests are sent to https
	rules    []*rule
}

// gatewayRoutes builds one route configuration of a gateway: that of all servers
// of a plaintext port, or of one server that ends TLS.
func (b *builder) gatewayRoutes(name string) proto.Message {
	var port *gatewayPort
	hosts := map[string]*gatewayHost{}
	for _, p := range b.gatewayPorts() {
		for _, s := range p.servers {
			if s.routed(p.speech) && p.routesName(s) == name {
				port = p
				b.addHosts(hosts, p, s)
			}
		}
	}
	if port == nil {
		return nil
	}
	var all []*routev3.VirtualHost
	for _, domain := range slices.Sorted(maps.Keys(hosts)) {
		if host := b.gatewayHost(domain, hosts[domain], port); host != nil {
			all = append(all, host)
		}
	}
	c := resource.NewRoutes(name, all)
	c.IgnorePortInHostMatching = true // callers may come through another port that is forwarded to this one
	return c
}

// addHosts adds what the server has: hosts of the VirtualServices that bind to
// it, and those of its own that it redirects.
func (b *builder) addHosts(hosts map[string]*gatewayHost, p *gatewayPort, s *gatewayServer) {
	redirect := p.speech == gateway.SpeaksHTTP && s.spec.GetTls().GetHttpsRedirect()
	at := func(name string) *gatewayHost {
		if hosts[name] == nil {
			hosts[name] = &gatewayHost{}
		}
		hosts[name].redirect = hosts[name].redirect || redirect
		return hosts[name]
	}
	for _, r := range b.bound(p, s) {
		for _, name := range r.hosts {
			at(name).add(r.rule)
		}
	}
	if redirect {
		for _, h := range s.hosts {
			at(h.Name)
		}
	}
}

// add takes up a VirtualService; it may be bound by several Gateways.
func (h *gatewayHost) add(r rule) {
	for _, known := range h.rules {
		if known.object == r.object {
			known.gateways = append(known.gateways, r.gateways...)
			return
		}
	}
	h.rules = append(h.rules, &r)
}

// gatewayHost joins the routes of all VirtualServices of a host, the oldest
// first; routes that take everything come last. Nil where there is none.
func (b *builder) gatewayHost(domain string, h *gatewayHost, p *gatewayPort) *routev3.VirtualHost {
	slices.SortFunc(h.rules, func(r, s *rule) int { return r.object.CompareAge(s.object) })
	var routes, last []*routev3.Route
	name := fmt.Sprintf("%s:%d", domain, p.number)
	for _, r := range h.rules {
		b.causedBy(r.object, name)
		for _, route := range b.routesOf(r, domain) {
			if takesEverything(route) {
				last = append(last, route)
			} else {
				routes = append(routes, route)
			}
		}
	}
	b.made(name, nil)
	routes = append(routes, last...)
	if len(routes) == 0 && !h.redirect {
		return nil
	}
	host := &routev3.VirtualHost{Name: name, Domains: []string{domain}, Routes: routes}
	if h.redirect {
		host.RequireTls = routev3.VirtualHost_ALL
	}
	if len(routes) == 0 {
		host.Routes = []*routev3.Route{{Match: resource.AnyPath(), Action: resource.Refuse(http.StatusNotFound, "no VirtualService has a route for this")}}
	}
	return host
}

// routesOf are the routes of one VirtualService; none where it cannot be
// expressed.
func (b *builder) routesOf(r *rule, domain string) []*routev3.Route {
	routes, err := r.http()
	if err == nil && len(routes) > 0 {
		err = check.Part(&routev3.VirtualHost{Name: "n", Domains: []string{"d"}, Routes: routes})
	}
	if err != nil {
		b.leaveOut(resource.Reason{Code: resource.ReasonInvalidRule, Cause: r.object.Key, Message: fmt.Sprintf("%s is left out for %s:%d: %v", r.object.Key, domain, r.port, err)})
		return nil
	}
	return routes
}

func takesEverything(route *routev3.Route) bool {
	return proto.Equal(route.GetMatch(), resource.AnyPath())
}
