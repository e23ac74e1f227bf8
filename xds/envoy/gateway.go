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
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/transport"
	"isthmus.dev/isthmus/xds/envoy/virtualservice"
)

// speech is what the connections to a port of a gateway speak; they are all of
// one sort.
type speech string

const (
	speaksHTTP speech = "plaintext HTTP"
	speaksTLS  speech = "TLS"
	speaksTCP  speech = "plaintext TCP"
)

// gatewayPort is an address and port at which the facet's proxies listen, with
// the servers of all Gateways that are for it, the oldest first.
type gatewayPort struct {
	bind    netip.Addr
	number  uint16
	facet   Facet
	speech  speech
	servers []*gatewayServer
	passed  map[string]bool   // names of servers whose connections are passed through
	reasons []resource.Reason // why servers of the port are not there
}

// gatewayServer is one server of a Gateway.
type gatewayServer struct {
	object *federation.Object
	spec   *networking.Server
	field  string // servers[2]
	hosts  []serverHost
	names  []string                // TLS: the names of servers for which it has the connections
	socket *corev3.TransportSocket // TLS that it ends
	err    error                   // why it cannot end TLS
}

// serverHost is a host of a server and whose VirtualServices may bind to it.
type serverHost struct {
	namespace string // empty: any
	name      string // in lower case; may be a wildcard
}

// gatewayPorts finds what the facet's proxies are to listen at. Gateways of any
// namespace select them, as Istio's do.
func (b *builder) gatewayPorts() []*gatewayPort {
	var ports []*gatewayPort
	for _, o := range b.gateways() {
		for i, spec := range o.Spec.(*networking.Gateway).GetServers() {
			s := &gatewayServer{object: o, spec: spec, field: fmt.Sprintf("servers[%d]", i), hosts: serverHosts(spec.GetHosts(), o.Key.Namespace)}
			bind, err := bindOf(spec)
			if number := spec.GetPort().GetNumber(); err == nil && number > 0 && number < 1<<16 {
				ports = addServer(ports, s, &gatewayPort{bind: bind, number: b.facet.listensAt(uint16(number)), facet: b.facet, passed: map[string]bool{}})
			}
		}
	}
	return ports
}

// gateways are those that select the facet's proxies, the oldest first.
func (b *builder) gateways() []*federation.Object {
	var found []*federation.Object
	for o := range b.reader.ObjectsOf(gatewayKind) {
		if spec, ok := o.Spec.(*networking.Gateway); ok && b.facet.hasLabels(spec.GetSelector()) {
			found = append(found, o)
		}
	}
	slices.SortFunc(found, virtualservice.Older)
	return found
}

// bindOf is the address of the server; any IPv4 address where it names none.
func bindOf(s *networking.Server) (netip.Addr, error) {
	if s.GetBind() == "" {
		return netip.IPv4Unspecified(), nil
	}
	addr, err := netip.ParseAddr(s.GetBind())
	if err != nil || addr.Zone() != "" {
		return netip.Addr{}, fmt.Errorf("%q is no IP address", s.GetBind())
	}
	return addr.Unmap(), nil
}

// addServer gives the server its place among the others of its port. Of servers
// that cannot share the port, the first has it.
func addServer(ports []*gatewayPort, s *gatewayServer, at *gatewayPort) []*gatewayPort {
	i := slices.IndexFunc(ports, func(p *gatewayPort) bool { return p.bind == at.bind && p.number == at.number })
	if i < 0 {
		i, ports = len(ports), append(ports, at)
	}
	p := ports[i]
	how, why := speechOf(s.spec)
	switch {
	case why != "":
		p.leaveOut(s, resource.ReasonInvalidRule, why)
	case len(p.servers) > 0 && p.speech != how:
		p.losesTo(p.servers[0], s, fmt.Sprintf("port %d speaks %s for %s, which comes first; take another port for %s", p.number, p.speech, p.servers[0].title(), how))
	case how == speaksTCP && len(p.servers) > 0:
		p.losesTo(p.servers[0], s, fmt.Sprintf("port %d is taken by %s, and connections of plaintext TCP cannot be told apart", p.number, p.servers[0].title()))
	case how == speaksTLS && !p.claimNames(s):
	default:
		p.speech, p.servers = how, append(p.servers, s)
		if how == speaksTLS && !s.passesOn() {
			s.socket, s.err = transport.ServerTLS(s.spec.GetTls(), p.facet.Identity, s.routed(speaksTLS))
		}
	}
	return ports
}

// speechOf tells what a server speaks, or why it cannot be.
func speechOf(s *networking.Server) (how speech, why string) {
	switch protocol := strings.ToUpper(s.GetPort().GetProtocol()); protocol {
	case "HTTP", "HTTP2", "GRPC", "GRPC-WEB":
		return speaksHTTP, ""
	case "HTTPS", "TLS":
		if s.GetTls() == nil {
			return "", "protocol " + protocol + " needs tls"
		}
		return speaksTLS, ""
	case "TCP", "MONGO", "MYSQL", "REDIS":
		if s.GetTls() != nil {
			return speaksTLS, ""
		}
		return speaksTCP, ""
	default:
		return "", fmt.Sprintf("protocol %q is none that a gateway can take", protocol)
	}
}

// claimNames gives a server of TLS the names that no server before it has; false
// where none is left.
func (p *gatewayPort) claimNames(s *gatewayServer) bool {
	var left []serverHost
	for _, h := range s.hosts {
		if h.name != "*" && !resource.IsServerName(h.name) {
			p.leaveOut(s, resource.ReasonInvalidRule, fmt.Sprintf("TLS cannot ask for %q; use a name or a wildcard for its first part", h.name))
			continue
		}
		if owner := p.ownerOf(h.name); owner != nil {
			p.losesTo(owner, s, fmt.Sprintf("connections for %q are those of %s, which comes first", h.name, owner.title()))
			continue
		}
		left = append(left, h)
		if !slices.Contains(s.names, h.name) {
			s.names = append(s.names, h.name)
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

// passesOn tells that the server does not end TLS.
func (s *gatewayServer) passesOn() bool {
	return s.mode() == networking.ServerTLSSettings_PASSTHROUGH || s.mode() == networking.ServerTLSSettings_AUTO_PASSTHROUGH
}

// routed tells that the server's requests are routed as HTTP.
func (s *gatewayServer) routed(how speech) bool {
	https := strings.EqualFold(s.spec.GetPort().GetProtocol(), "HTTPS") && !s.passesOn()
	return how == speaksHTTP || https && s.err == nil
}

// routesName is the route configuration of a server that routes HTTP.
func (p *gatewayPort) routesName(s *gatewayServer) string {
	if p.speech == speaksHTTP {
		name := fmt.Sprintf("http.%d", p.number)
		if s.spec.GetBind() != "" {
			name += "." + p.bind.String()
		}
		return name
	}
	return fmt.Sprintf("https.%d.%s.%s.%s", p.number, cmp.Or(s.spec.GetPort().GetName(), s.field), s.object.Key.Name, s.object.Key.Namespace)
}

// serverHosts reads NAMESPACE/HOST, ./HOST, */HOST and HOST of a Gateway in the
// namespace.
func serverHosts(hosts []string, own string) []serverHost {
	var all []serverHost
	for _, text := range hosts {
		namespace, name, ok := strings.Cut(strings.ToLower(text), "/")
		switch {
		case !ok:
			namespace, name = "", strings.ToLower(text)
		case namespace == ".":
			namespace = own
		case namespace == "*":
			namespace = ""
		}
		if name == "*" || resource.IsDomain(name) {
			all = append(all, serverHost{namespace, name})
		}
	}
	return all
}

// admitted is the name under which a VirtualService of the namespace has the
// host at the server: the narrower of the two names; empty: it has not.
func (h serverHost) admitted(host, namespace string) string {
	switch {
	case h.namespace != "" && h.namespace != namespace:
		return ""
	case resource.Covers(h.name, host):
		return host
	case resource.Covers(host, h.name):
		return h.name
	}
	return ""
}

// gatewayKind is the kind of Gateways.
var gatewayKind = federation.Kind{Group: "networking.istio.io", Name: "Gateway"}
