// Package route makes routes of VirtualServices and services: for requests, by virtual
// host, and for connections.
package route

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/service"
)

// Plan is a route configuration whose virtual hosts know their names, but
// have no routes yet.
type Plan struct {
	Name       string
	Hosts      []*Host
	Last       *routev3.VirtualHost // takes what no other does; nil: a host does
	ignorePort bool
}

// Shell is the configuration around the virtual hosts.
func (p *Plan) Shell(hosts []*routev3.VirtualHost) *routev3.RouteConfiguration {
	if p.Last != nil {
		hosts = append(hosts, p.Last)
	}
	c := resource.NewRoutes(p.Name, hosts)
	c.IgnorePortInHostMatching = p.ignorePort
	return c
}

// Planner plans the routes of a name. It returns nil if the name does not exist.
type Planner func(v *facet.View, name string) *Plan

// PlanPorts plans the routes of captured requests, by port.
func PlanPorts(v *facet.View, name string) *Plan {
	if host, number, ok := resource.ParseTarget(name); ok {
		return planDetected(v, federation.Hostname(host), number)
	}
	number, ok := resource.ParsePort(name)
	if !ok || !service.SpeaksHTTP(v, number) {
		return nil
	}
	return planPort(v, name, number, func(hosts []*Host) []*Host { return hosts })
}

// planPort is of the requests to one port, which was decided when the connection was caught.
func planPort(v *facet.View, name string, number uint16, some func([]*Host) []*Host) *Plan {
	only := []uint16{number}
	hosts := some(httpHosts(v, v.Reader.SpecsOnPort(number), func([]*federation.Service) []uint16 { return only }))
	hosts = withRuledHosts(v, hosts, number)
	plan := atPort(v, name, hosts)
	plan.Last = elsewhere(v)
	return plan
}

// atPort is a plan of requests to one port, whatever port their authority names.
func atPort(v *facet.View, name string, hosts []*Host) *Plan {
	for _, h := range hosts {
		h.byPort = true
	}
	claimDomains(v, hosts, func(domain string, _ uint16) []string { return []string{domain} })
	return &Plan{Name: name, Hosts: hosts, ignorePort: true}
}

// Apart are the routes of a listener at an address of its own: to the exposed hosts at the port, or at all ports,
// told apart by the request's authority, if it is 0. Where callers dial the listener itself, what has no host is refused.
func Apart(v *facet.View, name string, number uint16, dialed bool) *routev3.RouteConfiguration {
	var plan *Plan
	switch {
	case number == 0:
		plan = planProxy(v)
		plan.Name = name
	case dialed:
		plan = planPort(v, name, number, func(hosts []*Host) []*Host { return withoutDestination(v, hosts) })
		plan.Last = noService()
	default:
		plan = planPort(v, name, number, func(hosts []*Host) []*Host { return hosts })
	}
	return plan.built(v)
}

// planDetected is of the requests to one port of which nothing says that it speaks HTTP: all are
// for its service, save those to another name of it that has a VirtualService. A service may be
// another name of one that only some proxies see. All share its listener, and the requests of
// those go to the service that they see.
func planDetected(v *facet.View, host federation.Hostname, number uint16) *Plan {
	owner, _ := service.FirstOwner(v.Reader.ByHostname(host), number, v.Facet.OwnNamespace(), v.Facet.Covers)
	if owner.Service == nil || !service.Detected(v, owner.Port) {
		return nil
	}
	name := resource.TargetName(string(host), number)
	if real, alias := service.AliasAmong(v, host, owner); alias != nil {
		owner, _ = service.FirstOwner(v.Reader.ByHostname(real), number, v.Facet.OwnNamespace(), v.Facet.Covers)
	}
	if owner.Service == nil || !service.MayBeHTTP(v, owner.Port) || service.IsAlias(v, owner.Service) {
		return &Plan{Name: name, Last: noService(), ignorePort: true}
	}
	plan := atPort(v, name, withAliases(v, nil, &Host{Host: owner.Service.Key.Hostname, Number: number, Service: owner.Service}))
	plan.Hosts[0].Domains = []string{"*"}
	return plan
}

// noService refuses the requests that are for no service.
func noService() *routev3.VirtualHost {
	return blockAll("no such service")
}

// elsewhere takes the requests to hosts of which the mesh knows nothing.
func elsewhere(v *facet.View) *routev3.VirtualHost {
	if v.Facet.Outbound != federation.RegistryOnly {
		const name = "allow_any"
		route := resource.ForwardTo(cmp.Or(v.Facet.EgressProxy, resource.PassthroughCluster))
		route.Name = name
		return resource.Everything(name, route)
	}
	return blockAll("no service of the mesh has this name, and the outbound traffic policy is REGISTRY_ONLY")
}

// blockAll refuses all requests.
func blockAll(why string) *routev3.VirtualHost {
	const name = "block_all"
	return resource.Everything(name, &routev3.Route{
		Name: name, Match: resource.AnyPath(), Action: resource.Refuse(http.StatusBadGateway, why),
	})
}

// PlanProxy plans the routes of the explicit HTTP proxy.
func PlanProxy(v *facet.View, name string) *Plan {
	if name != resource.HTTPProxyRoutes {
		return nil
	}
	return planProxy(v)
}

// planProxy tells ports apart by the request's authority. Where a connection
// would have gone without the proxy is not known here, so that unknown hosts
// cannot be reached through it.
func planProxy(v *facet.View) *Plan {
	services := func(yield func(*federation.Service) bool) {
		for s := range v.Reader.Specs() {
			if v.Facet.Covers(s) && !yield(s) {
				return
			}
		}
	}
	hosts := withoutDestination(v, httpHosts(v, services, service.PortNumbers))
	hosts = withRuledHosts(v, hosts, RuledPort)
	claimDomains(v, hosts, func(domain string, port uint16) []string {
		withPort := fmt.Sprintf("%s:%d", domain, port)
		if port == 80 {
			return []string{domain, withPort}
		}
		return []string{withPort}
	})
	return &Plan{Name: resource.HTTPProxyRoutes, Hosts: hosts, Last: noService()}
}

// withoutDestination are the hosts whose callers do not choose the instance: they cannot say which one to a proxy
// that they dial.
func withoutDestination(v *facet.View, hosts []*Host) []*Host {
	return slices.DeleteFunc(hosts, func(h *Host) bool { return needsDestination(v, h) })
}

// needsDestination reports whether the host's callers choose the instance, which they
// cannot say to an explicit proxy.
func needsDestination(v *facet.View, h *Host) bool {
	needs := h.Service != nil && h.Service.Resolution == federation.Passthrough
	if needs {
		v.LeaveOut(resource.Reason{
			Code: resource.ReasonNoDestination, Service: h.ServiceKey(),
			Message: h.Name() + " cannot be reached through a port of the proxy: its callers choose the instance by address; call it directly",
		})
	}
	return needs
}

// VirtualHost is nil where there are no routes or no name for them.
func VirtualHost(v *facet.View, h *Host) *routev3.VirtualHost {
	routes := HostRoutes(v, h)
	v.Made(h.Name(), h.Service)
	if len(routes) == 0 || len(h.Domains) == 0 {
		return nil
	}
	return &routev3.VirtualHost{Name: h.Name(), Domains: h.Domains, Routes: routes}
}

// Build builds the routes that were planned.
func (of Planner) Build(v *facet.View, name string) proto.Message {
	plan := of(v, name)
	if plan == nil {
		return nil
	}
	return plan.built(v)
}

func (p *Plan) built(v *facet.View) *routev3.RouteConfiguration {
	all := make([]*routev3.VirtualHost, 0, len(p.Hosts)+1)
	for _, h := range p.Hosts {
		if host := VirtualHost(v, h); host != nil {
			all = append(all, host)
		}
	}
	return p.Shell(all)
}

// AppendProxyNames adds the routes of the explicit HTTP proxy. They change with every port: a TCP service may own a hostname.
func AppendProxyNames(names []string, _ node.Facet, _ service.ServedPort) []string {
	return append(names, resource.HTTPProxyRoutes)
}

// AppendNames adds the routes of captured requests that exist, or change, because of a port of a service.
func AppendNames(names []string, f node.Facet, p service.ServedPort) []string {
	reserved := federation.TakenBySidecars(p.Port.Number, f.Agent)
	switch {
	case p.Port.Undeclared && !reserved:
		return append(names, strconv.Itoa(int(p.Port.Number)), resource.TargetName(string(p.Service.Key.Hostname), p.Port.Number))
	case p.Port.Undeclared:
		return append(names, resource.TargetName(string(p.Service.Key.Hostname), p.Port.Number))
	case p.Port.Protocol.IsHTTP() && !reserved:
		return append(names, strconv.Itoa(int(p.Port.Number)))
	}
	return names
}
