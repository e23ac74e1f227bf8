// Package edge builds the listeners and routes of gateways from the Gateways that select
// them.
package edge

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/authentication"
	"isthmus.dev/isthmus/xds/envoy/authorization"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/gateway"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// listenPort is an address and port at which the facet's proxies listen, with
// the servers of all Gateways that are for it, the oldest first.
type listenPort struct {
	bind     netip.Addr
	number   uint16
	facet    node.Facet
	protocol gateway.ServerProtocol
	servers  []*Server
	owners   map[string]*Server // TLS: by the names of servers
	passed   map[string]bool    // names of servers whose connections are passed through
	reasons  []resource.Reason  // why servers of the port are not there
	policies *authorization.Policies
	tokens   *authentication.Tokens
	// unverified are the policies for callers whose certificates are not verified.
	unverified func() *authorization.Policies
	// datagrams are the ports that take datagrams, by the names of their listeners.
	datagrams map[string]*listenPort
}

// policiesFor are the policies that decide about callers of the server.
func (p *listenPort) policiesFor(s *Server) *authorization.Policies {
	if s.unverified(p.protocol) {
		return p.unverified()
	}
	return p.policies
}

// translatesWeb reports whether requests of gRPC-Web become those of gRPC: all plaintext servers of a port have the same filters.
func (p *listenPort) translatesWeb() bool {
	return p.protocol == gateway.ServesHTTP && slices.ContainsFunc(p.servers, func(s *Server) bool { return gateway.TranslatesWeb(s.spec) })
}

// ports finds what the facet's proxies are to listen at. Gateways of any
// namespace select them, as Istio's do.
func ports(v *facet.View) []*listenPort {
	var ports []*listenPort
	datagrams := map[string]*listenPort{}
	for _, o := range gateways(v) {
		for i, spec := range o.Spec.(*networking.Gateway).GetServers() {
			s := &Server{object: o, spec: spec, field: fmt.Sprintf("servers[%d]", i), hosts: gateway.Hosts(spec.GetHosts(), o.Key.Namespace)}
			bind, err := gateway.Bind(spec)
			if number := spec.GetPort().GetNumber(); err == nil && number > 0 && number < 1<<16 {
				p := &listenPort{bind: bind, facet: v.Facet, owners: map[string]*Server{}, passed: map[string]bool{}, datagrams: datagrams}
				p.protocol, s.cannot = gateway.ServerProtocolOf(spec)
				p.number = v.Facet.ListensAt(uint16(number))
				if p.protocol == gateway.ServesUDP {
					p.number = v.Facet.DatagramsAt(uint16(number))
				}
				ports = addServer(ports, s, p)
			}
		}
	}
	return ports
}

// gateways are those that select the facet's proxies, the oldest first.
func gateways(v *facet.View) []*federation.Object {
	var found []*federation.Object
	for o := range v.Reader.Objects().Of(federation.GatewayKind) {
		if spec, ok := o.Spec.(*networking.Gateway); ok && v.Facet.HasLabels(spec.GetSelector()) && o.Credentials.Concerns(v.Facet.Namespace) {
			found = append(found, o)
		}
	}
	slices.SortFunc(found, (*federation.Object).CompareAge)
	return found
}

// addServer gives the server its place among the others of its port. Of servers
// that cannot share the port, the first has it.
func addServer(ports []*listenPort, s *Server, at *listenPort) []*listenPort {
	how := at.protocol
	i := slices.IndexFunc(ports, func(p *listenPort) bool {
		return p.bind == at.bind && p.number == at.number && (p.protocol == gateway.ServesUDP) == (how == gateway.ServesUDP)
	})
	if i < 0 {
		i, ports = len(ports), append(ports, at)
	}
	p := ports[i]
	switch {
	case s.cannot != "":
		p.leaveOut(s, resource.ReasonInvalidRule, s.cannot)
	case p.isAgents():
		p.leaveOut(s, resource.ReasonPortReserved, fmt.Sprintf(
			"port %d is used by Istio's agent, so the gateway does not listen there; use another port", p.number))
	case len(p.servers) > 0 && p.protocol != how:
		p.losesTo(p.servers[0], s, fmt.Sprintf("port %d speaks %s for %s, which comes first; take another port for %s", p.number,
			p.protocol, p.servers[0].title(), how))
	case how == gateway.ServesTCP && len(p.servers) > 0:
		p.losesTo(p.servers[0], s, fmt.Sprintf("port %d is taken by %s, and connections of plaintext TCP cannot be told apart",
			p.number, p.servers[0].title()))
	case how == gateway.ServesUDP && len(p.servers) > 0:
		p.losesTo(p.servers[0], s, fmt.Sprintf("port %d is taken by %s, and datagrams cannot be told apart", p.number, p.servers[0].title()))
	case how == gateway.ServesTLS && !p.claimNames(s):
	case how == gateway.ServesUDP:
		p.servers, p.datagrams[p.listener()] = append(p.servers, s), p
	default:
		p.protocol, p.servers = how, append(p.servers, s)
		if how == gateway.ServesTLS && !gateway.PassesOn(s.spec) {
			s.ends = sync.OnceValues(func() (*corev3.TransportSocket, error) { return s.endTLS(p.facet) })
		}
	}
	return ports
}

// isAgents reports whether the facet's proxies, or the agents beside them, listen at the port already.
func (p *listenPort) isAgents() bool {
	everywhere := p.bind.IsUnspecified() || p.bind.IsLoopback()
	return p.facet.Agent && everywhere && p.protocol != gateway.ServesUDP && federation.TakenByAgents(p.number)
}

// claimNames gives a server of TLS the names that no server before it has; false
// where none is left.
func (p *listenPort) claimNames(s *Server) bool {
	var left []gateway.Host
	for _, h := range s.hosts {
		if h.Name != "*" && !resource.IsServerName(h.Name) {
			p.leaveOut(s, resource.ReasonInvalidRule, fmt.Sprintf("TLS cannot ask for %q; use a name or a wildcard for its first part", h.Name))
			continue
		}
		if owner := p.owners[h.Name]; owner != nil && owner != s {
			p.losesTo(owner, s, fmt.Sprintf("connections for %q are those of %s, which comes first", h.Name, owner.title()))
			continue
		}
		left = append(left, h)
		if !slices.Contains(s.names, h.Name) {
			s.names, p.owners[h.Name] = append(s.names, h.Name), s
		}
	}
	s.hosts = left
	return len(left) > 0
}

func (p *listenPort) leaveOut(s *Server, code, why string) {
	p.reasons = append(p.reasons, resource.Reason{Code: code, Cause: s.object.Subject(), Message: s.title() + ": " + why})
}

// losesTo is the reason that another server comes first.
func (p *listenPort) losesTo(first, s *Server, why string) {
	p.leaveOut(s, resource.ReasonGatewayConflict, why)
	if first.object != s.object {
		p.reasons[len(p.reasons)-1].Related = []federation.ObjectKey{first.object.Subject()}
	}
}

func (p *listenPort) listener() string {
	if p.protocol == gateway.ServesUDP {
		return resource.DatagramListener(p.bind, p.number)
	}
	return resource.VIPListener(p.bind, p.number)
}

// routesName is the route configuration of a server that routes HTTP.
func (p *listenPort) routesName(s *Server) string {
	if p.protocol == gateway.ServesHTTP {
		name := fmt.Sprintf("http.%d", p.number)
		if s.spec.GetBind() != "" {
			name += "." + p.bind.String()
		}
		return name
	}
	return fmt.Sprintf("https.%d.%s.%s.%s", p.number, cmp.Or(s.spec.GetPort().GetName(), s.field), s.object.Key.Name, s.object.Key.Namespace)
}
