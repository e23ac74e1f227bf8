package envoy

import (
	"cmp"
	"fmt"
	"iter"
	"net/http"
	"slices"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/virtualservice"
)

// routePlan is a route configuration whose virtual hosts know their names, but
// have no routes yet.
type routePlan struct {
	name       string
	hosts      []*httpHost
	last       *routev3.VirtualHost // takes what no other does
	ignorePort bool
}

// routes builds the routes of one port, those of the explicit HTTP proxy, those of
// a gateway, or those of a gRPC client.
func (b *builder) routes(name string) proto.Message {
	switch {
	case b.facet.GRPC:
		return b.grpcRoutes(name)
	case b.facet.Scope == node.ScopeGateway:
		return b.gatewayRoutes(name)
	}
	plan := b.planRoutes(name)
	if plan == nil {
		return nil
	}
	all := make([]*routev3.VirtualHost, 0, len(plan.hosts)+1)
	for _, h := range plan.hosts {
		if host := b.virtualHost(h); host != nil {
			all = append(all, host)
		}
	}
	return plan.shell(all)
}

// shell is the configuration around the virtual hosts.
func (p *routePlan) shell(hosts []*routev3.VirtualHost) *routev3.RouteConfiguration {
	c := resource.NewRoutes(p.name, append(hosts, p.last))
	c.IgnorePortInHostMatching = p.ignorePort
	return c
}

// planRoutes is nil where the name does not exist.
func (b *builder) planRoutes(name string) *routePlan {
	if b.facet.Scope == node.ScopeProxyRoutes && name == resource.HTTPProxyRoutes {
		return b.planProxy()
	}
	number, ok := resource.ParsePort(name)
	if b.facet.Scope != node.ScopeRoutes || !ok {
		return nil
	}
	only := []uint16{number}
	hosts := b.httpHosts(b.reader.SpecsOnPort(number), func([]*federation.Service) []uint16 { return only })
	if len(hosts) == 0 && !b.speaksHTTP(number) {
		return nil
	}
	hosts = b.withRuledHosts(hosts, number)
	b.claimDomains(hosts, func(domain string, _ uint16) []string { return []string{domain} })
	return &routePlan{name: name, hosts: hosts, last: b.elsewhere(), ignorePort: true} // the port was decided when the connection was caught
}

// elsewhere takes the requests to hosts of which the mesh knows nothing.
func (b *builder) elsewhere() *routev3.VirtualHost {
	if b.facet.Outbound != federation.RegistryOnly {
		return resource.Everything("allow_any", resource.ForwardTo(resource.PassthroughCluster))
	}
	return resource.Everything("block_all", &routev3.Route{Match: resource.AnyPath(), Action: resource.Refuse(http.StatusBadGateway,
		"no service of the mesh has this name, and the outbound traffic policy is REGISTRY_ONLY")})
}

// planProxy tells ports apart by the request's authority. Where a connection
// would have gone without the proxy is not known here, so that unknown hosts
// cannot be reached through it.
func (b *builder) planProxy() *routePlan {
	services := b.reader.Select(func(s *federation.Service) bool {
		return b.facet.Covers(s) && slices.ContainsFunc(s.Ports, func(p federation.ServicePort) bool { return p.Protocol.Transport() == federation.TransportTCP })
	})
	hosts := slices.DeleteFunc(b.httpHosts(slices.Values(services), portNumbers), func(h *httpHost) bool { return b.needsDestination(h) })
	hosts = b.withRuledHosts(hosts, ruledPort)
	b.claimDomains(hosts, func(domain string, port uint16) []string {
		withPort := fmt.Sprintf("%s:%d", domain, port)
		if port == 80 {
			return []string{domain, withPort}
		}
		return []string{withPort}
	})
	unknown := &routev3.Route{Match: resource.AnyPath(), Action: resource.Refuse(http.StatusBadGateway, "no such service")}
	return &routePlan{name: resource.HTTPProxyRoutes, hosts: hosts, last: resource.Everything("block_all", unknown)}
}

// needsDestination tells that the host's callers choose the instance, which they
// cannot say to an explicit proxy.
func (b *builder) needsDestination(h *httpHost) bool {
	needs := h.service != nil && h.service.Resolution == federation.Passthrough
	if needs {
		b.leaveOut(resource.Reason{Code: resource.ReasonNoDestination, Service: h.serviceKey(), Message: h.name() + " cannot be reached through the HTTP proxy port: its callers choose the instance by address; call it directly"})
	}
	return needs
}

// httpHost is a virtual host in the making.
type httpHost struct {
	host    federation.Hostname
	number  uint16
	service *federation.Service // nil: only a VirtualService speaks of the host
	target  *federation.Service // of which the host is another name, where a VirtualService speaks of that
	aliases []federation.Hostname
	domains []string
	ruledBy federation.ObjectKey // the VirtualService of which its routes are; zero: none
}

// ruledPort is the port on which sidecars serve hosts that are no services.
const ruledPort = 80

// withRuledHosts adds the hosts that only VirtualServices speak of.
func (b *builder) withRuledHosts(hosts []*httpHost, number uint16) []*httpHost {
	if number != ruledPort {
		return hosts
	}
	for _, host := range b.ruledHosts(hosts) {
		hosts = append(hosts, &httpHost{host: host, number: number})
	}
	return hosts
}

// httpHosts lists the HTTP ports among the numbers of services, given in the
// order of keys, that own their cluster's name.
func (b *builder) httpHosts(services iter.Seq[*federation.Service], numbers func([]*federation.Service) []uint16) []*httpHost {
	var hosts []*httpHost
	for group := range byHostname(services) {
		for _, number := range numbers(group) {
			owner, losers := firstOwner(group, number, b.facet.OwnNamespace(), b.facet.Covers)
			for _, s := range losers {
				if p, _ := tcpPort(s, number); p.Protocol.IsHTTP() {
					b.leaveOut(b.hostnameTaken(owner, s))
				}
			}
			if owner.service != nil && owner.port.Protocol.IsHTTP() && !b.isAlias(owner.service) {
				hosts = b.withAliases(hosts, &httpHost{host: owner.service.Key.Hostname, number: number, service: owner.service})
			}
		}
	}
	return hosts
}

// portNumbers are those of the services' TCP-based ports.
func portNumbers(services []*federation.Service) []uint16 {
	var numbers []uint16
	for _, s := range services {
		for _, p := range s.Ports {
			if p.Protocol.Transport() == federation.TransportTCP && !slices.Contains(numbers, p.Number) {
				numbers = append(numbers, p.Number)
			}
		}
	}
	return numbers
}

// serviceKey is empty where the host is no service.
func (h *httpHost) serviceKey() federation.ServiceKey {
	if h.service == nil {
		return federation.ServiceKey{}
	}
	return h.service.Key
}

func (h *httpHost) name() string { return fmt.Sprintf("%s:%d", h.host, h.number) }

// virtualHost is nil where there are no routes or no name for them.
func (b *builder) virtualHost(h *httpHost) *routev3.VirtualHost {
	routes := b.hostRoutes(h)
	b.made(h.name(), h.service)
	if len(routes) == 0 || len(h.domains) == 0 {
		return nil
	}
	return &routev3.VirtualHost{Name: h.name(), Domains: h.domains, Routes: routes}
}

// serviceRoute sends every request to the service.
func (b *builder) serviceRoute(h *httpHost) *routev3.Route {
	to := cmp.Or(h.service, h.target)
	route := resource.ForwardTo(resource.ClusterName(to.Key.Hostname, h.number))
	route.GetRoute().RetryPolicy = virtualservice.RetryPolicy()
	route.GetRoute().HashPolicy = b.hashPolicies(to, h.number, "")
	return route
}
