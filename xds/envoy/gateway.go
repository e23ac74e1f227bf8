package envoy

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/gateway"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/transport"
)

// gatewayPort is an address and port at which the facet's proxies listen, with
// the servers of all Gateways that are for it, the oldest first.
type gatewayPort struct {
	bind    netip.Addr
	number  uint16
	facet   node.Facet
	speech  gateway.Speech
	servers []*gatewayServer
	passed  map[string]bool   // names of servers whose connections are passed through
	reasons []resource.Reason // why servers of the port are not there
}

// gatewayServer is one server of a Gateway.
type gatewayServer struct {
	object *federation.Object
	spec   *networking.Server
	field  string // servers[2]
	hosts  []gateway.Host
	names  []string                // TLS: the names of servers for which it has the connections
	socket *corev3.TransportSocket // TLS that it ends
	err    error                   // why it cannot end TLS
}

// gatewayPorts finds what the facet's proxies are to listen at. Gateways of any
// namespace select them, as Istio's do.
func (b *builder) gatewayPorts() []*gatewayPort {
	var ports []*gatewayPort
	for _, o := range b.gateways() {
		for i, spec := range o.Spec.(*networking.Gateway).GetServers() {
			s := &gatewayServer{object: o, spec: spec, field: fmt.Sprintf("servers[%d]", i), hosts: gateway.Hosts(spec.GetHosts(), o.Key.Namespace)}
			bind, err := gateway.Bind(spec)
			if number := spec.GetPort().GetNumber(); err == nil && number > 0 && number < 1<<16 {
				ports = addServer(ports, s, &gatewayPort{bind: bind, number: b.facet.ListensAt(uint16(number)), facet: b.facet, passed: map[string]bool{}})
			}
		}
	}
	return ports
}

// gateways are those that select the facet's proxies, the oldest first.
func (b *builder) gateways() []*federation.Object {
	var found []*federation.Object
	for o := range b.reader.ObjectsOf(gateway.Kind) {
		if spec, ok := o.Spec.(*networking.Gateway); ok && b.facet.HasLabels(spec.GetSelector()) {
			found = append(found, o)
		}
	}
	slices.SortFunc(found, (*federation.Object).CompareAge)
	return found
}

// addServer gives the server its place among the others of its port. Of servers
// that cannot share the port, the first has it.
func addServer(ports []*gatewayPort, s *gatewayServer, at *gatewayPort) []*gatewayPort {
	i := slices.IndexFunc(ports, func(p *gatewayPort) bool { return p.bind == at.bind && p.number == at.number })
	if i < 0 {
		i, ports = len(ports), append(ports, at)
	}
	p := ports[i]
	how, why := gateway.SpeechOf(s.spec)
	switch {
	case why != "":
		p.leaveOut(s, resource.ReasonInvalidRule, why)
	case len(p.servers) > 0 && p.speech != how:
		p.losesTo(p.servers[0], s, fmt.Sprintf("port %d speaks %s for %s, which comes first; take another port for %s", p.number, p.speech, p.servers[0].title(), how))
	case how == gateway.SpeaksTCP && len(p.servers) > 0:
		p.losesTo(p.servers[0], s, fmt.Sprintf("port %d is taken by %s, and connections of plaintext TCP cannot be told apart", p.number, p.servers[0].title()))
	case how == gateway.SpeaksTLS && !p.claimNames(s):
	default:
		p.speech, p.servers = how, append(p.servers, s)
		if how == gateway.SpeaksTLS && !gateway.PassesOn(s.spec) {
			s.socket, s.err = transport.ServerTLS(s.spec.GetTls(), p.facet.Identity, s.routed(gateway.SpeaksTLS))
		}
	}
	return ports
}

// claimNames gives a server of TLS the names that no server before it has; false
// where none is left.
func (p *gatewayPort) claimNames(s *gatewayServer) bool {
	var left []gateway.Host
	for _, h := range s.hosts {
		if h.Name != "*" && !resource.IsServerName(h.Name) {
			p.leaveOut(s, resource.ReasonInvalidRule, fmt.Sprintf("TLS cannot ask for %q; use a name or a wildcard for its first part", h.Name))
			continue
		}
		if owner := p.ownerOf(h.Name); owner != nil {
			p.losesTo(owner, s, fmt.Sprintf("connections for %q are those of %s, which comes first", h.Name, owner.title()))
			continue
		}
		left = append(left, h)
		if !slices.Contains(s.names, h.Name) {
			s.names = append(s.names, h.Name)
		}
	}
	s.hosts = left
	return len(left) > 0
}

func (p *gatewayPort) ownerOf(name string) *gatewayServer {
	for _, s := range p.servers {
		if slices.Contains(s.names, name) {
			return s
		}
	}
	return nil
}

func (p *gatewayPort) leaveOut(s *gatewayServer, code, why string) {
	p.reasons = append(p.reasons, resource.Reason{Code: code, Cause: s.object.Key, Message: s.title() + ": " + why})
}

// losesTo says that another server comes first.
func (p *gatewayPort) losesTo(first, s *gatewayServer, why string) {
	p.leaveOut(s, resource.ReasonGatewayConflict, why)
	if first.object != s.object {
		p.reasons[len(p.reasons)-1].Related = []federation.ObjectKey{first.object.Key}
	}
}

func (p *gatewayPort) listener() string { return resource.VIPListener(p.bind, p.number) }

func (s *gatewayServer) title() string { return s.object.Key.String() + " " + s.field }

// gatewayName is how VirtualServices name the server's Gateway.
func (s *gatewayServer) gatewayName() string { return s.object.Key.Namespace + "/" + s.object.Key.Name }

func (s *gatewayServer) mode() networking.ServerTLSSettings_TLSmode { return s.spec.GetTls().GetMode() }

// routed tells that the server's requests are routed as HTTP.
func (s *gatewayServer) routed(how gateway.Speech) bool {
	https := strings.EqualFold(s.spec.GetPort().GetProtocol(), "HTTPS") && !gateway.PassesOn(s.spec)
	return how == gateway.SpeaksHTTP || https && s.err == nil
}

// routesName is the route configuration of a server that routes HTTP.
func (p *gatewayPort) routesName(s *gatewayServer) string {
	if p.speech == gateway.SpeaksHTTP {
		name := fmt.Sprintf("http.%d", p.number)
		if s.spec.GetBind() != "" {
			name += "." + p.bind.String()
		}
		return name
	}
	return fmt.Sprintf("https.%d.%s.%s.%s", p.number, cmp.Or(s.spec.GetPort().GetName(), s.field), s.object.Key.Name, s.object.Key.Namespace)
}
