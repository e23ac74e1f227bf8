package edge

import (
	"slices"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"isthmus.dev/isthmus/xds/envoy/destination"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/pods"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/service"
	"isthmus.dev/isthmus/xds/envoy/transport"
)

// passBySNI has one chain for each name that the server's hosts admit, so that no
// name leads anywhere else and the connections of a service outlive changes of
// others. What asks for no name, for another, or speaks no protocol of the mesh
// finds no chain.
func passBySNI(v *facet.View, p *listenPort, s *Server) []*listenerv3.FilterChain {
	if !v.Facet.SNIDNAT {
		v.LeaveOut(resource.Reason{Code: resource.ReasonTLS, Cause: s.object.Subject(), Message: s.title() +
			".tls.mode: AUTO_PASSTHROUGH needs a router in a namespace where gateways may be (gatewayNamespaces of MeshSettings); nothing listens for the server's hosts"})
		return nil
	}
	var chains []*listenerv3.FilterChain
	for _, name := range passable(v, s) {
		if p.passed[name] {
			continue
		}
		p.passed[name] = true
		match := &listenerv3.FilterChainMatch{
			TransportProtocol: "tls", ServerNames: []string{name},
			ApplicationProtocols: transport.MeshProtocols(),
		}
		tcp := resource.NewTCP(name)
		tcp.StatPrefix = p.listener()
		chains = append(chains, &listenerv3.FilterChain{
			Name: name, FilterChainMatch: match, Filters: []*listenerv3.Filter{resource.Filter(resource.TCPProxyFilter, tcp)},
		})
	}
	if len(chains) == 0 {
		v.LeaveOut(resource.Reason{
			Code: resource.ReasonNoDestination, Cause: s.object.Subject(),
			Message: s.title() + ": no service of the mesh has one of its hosts; nothing listens for them",
		})
	}
	return chains
}

// passable are the names of the clusters that the server's hosts admit, sorted.
func passable(v *facet.View, s *Server) []string {
	var names []string
	for svc, subsets := range destination.PassedServices(v.Facet.Namespace, v.Reader, s.admits) {
		if service.IsHeadless(svc) {
			svc, _ = v.Reader.Endpoints(svc.Key)
			for _, p := range pods.Of(svc) {
				names = append(names, p.ServerNames()...)
			}
		}
		names = append(names, destination.PassedNames(svc, subsets)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
