package edge

import (
	"fmt"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/gateway"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/transport"
)

// meshSocket is the same of a gateway's server, which may name its callers.
func meshSocket(v *facet.View, s *Server) *corev3.TransportSocket {
	callers := transport.ExactNames(slices.Clone(s.spec.GetTls().GetSubjectAltNames()))
	if len(callers) == 0 {
		callers = transport.OfTrustDomains(v.Reader.TrustDomains())
	}
	var protocols []string
	if s.routed(gateway.ServesTLS) {
		protocols = []string{"h2", "http/1.1"}
	}
	return transport.MeshListener(callers, protocols, v.Facet.Agent)
}

// Server is one server of a Gateway.
type Server struct {
	object *federation.Object
	spec   *networking.Server
	field  string // servers[2]
	hosts  []gateway.Host
	cannot string   // why it cannot be; "": it can
	names  []string // TLS: the names of servers for which it has the connections
	// ends makes the server's side of TLS, or says why it cannot end TLS; nil: it need not.
	// A port has many servers, and most builds are about one of them.
	ends func() (*corev3.TransportSocket, error)
}

func (s *Server) title() string {
	if s.ofListener() {
		return s.object.SubjectTitle()
	}
	return s.object.Key.String() + " " + s.field
}

// withoutRoute is the reason that nothing routes the server's connections or datagrams.
func (s *Server) withoutRoute(what string) resource.Reason {
	why := "no VirtualService has a route for its " + what
	if s.ofListener() {
		why = "no route with a backend attaches for its " + what
	}
	return resource.Reason{
		Code: resource.ReasonNoDestination, Cause: s.object.Subject(), Message: s.title() + ": " + why + "; nothing listens for them",
	}
}

// gatewayName is how VirtualServices name the server's Gateway.
func (s *Server) gatewayName() string { return s.object.Key.Namespace + "/" + s.object.Key.Name }

// port is the number by which callers know the server.
func (s *Server) port() uint16 { return uint16(s.spec.GetPort().GetNumber()) }

func (s *Server) mode() networking.ServerTLSSettings_TLSmode { return s.spec.GetTls().GetMode() }

// routed reports whether the server's requests are routed as HTTP.
func (s *Server) routed(how gateway.ServerProtocol) bool {
	if how == gateway.ServesHTTP || !s.https() {
		return how == gateway.ServesHTTP
	}
	_, err := s.ends()
	return err == nil
}

func (s *Server) https() bool {
	return strings.EqualFold(s.spec.GetPort().GetProtocol(), "HTTPS") && !gateway.PassesOn(s.spec)
}

// unverified reports whether certificates of callers prove nothing to the server.
func (s *Server) unverified(how gateway.ServerProtocol) bool {
	return how == gateway.ServesTLS && transport.Unverified(s.spec.GetTls())
}

// clientDetails are what backends get of the certificate of a client: the certificate itself and,
// unless it is not verified, its names.
func (s *Server) clientDetails() *hcmv3.HttpConnectionManager_SetCurrentClientCertDetails {
	if transport.Unverified(s.spec.GetTls()) {
		return &hcmv3.HttpConnectionManager_SetCurrentClientCertDetails{Cert: true}
	}
	return &hcmv3.HttpConnectionManager_SetCurrentClientCertDetails{Subject: wrapperspb.Bool(true), Cert: true, Uri: true, Dns: true}
}

// endTLS makes the server's side of TLS. A grant of the Gateway replaces the credentials of
// the proxy's own namespace, and is for proxies of the namespace that it names.
func (s *Server) endTLS(f node.Facet) (*corev3.TransportSocket, error) {
	grant := s.object.Credentials
	if grant.To != "" && grant.To != f.Namespace {
		return nil, fmt.Errorf(".tls.credentialName: the Secrets of namespace %s are for gateways of namespace %s, not for those of %s",
			grant.From, grant.To, f.Namespace)
	}
	return transport.Termination{Identity: f.Identity, HTTP: s.https(), From: grant.From, Lenient: true}.TLS(s.spec.GetTls())
}

// admits reports whether the server's hosts let connections for the service pass:
// NAMESPACE/HOST is of that namespace alone.
func (s *Server) admits(svc *federation.Service) bool {
	return slices.ContainsFunc(s.hosts, func(h gateway.Host) bool {
		return (h.Namespace == "" || h.Namespace == svc.Key.Namespace) && resource.Covers(h.Name, string(svc.Key.Hostname))
	})
}

// AdmittingServers are the servers of Gateways by which connections of other
// networks enter.
func AdmittingServers(s *federation.Snapshot) []*Server {
	var all []*Server
	for o := range s.Objects().Of(federation.GatewayKind) {
		spec, ok := o.Spec.(*networking.Gateway)
		if !ok {
			continue
		}
		for _, server := range spec.GetServers() {
			if gateway.BySNI(server) {
				all = append(all, &Server{object: o, spec: server, hosts: gateway.Hosts(server.GetHosts(), o.Key.Namespace)})
			}
		}
	}
	return all
}

// AdmitsAny is true where no Gateway is known: gateways of others than this hub
// have theirs elsewhere.
func AdmitsAny(servers []*Server, svc *federation.Service) bool {
	return len(servers) == 0 || slices.ContainsFunc(servers, func(s *Server) bool { return s.admits(svc) })
}
