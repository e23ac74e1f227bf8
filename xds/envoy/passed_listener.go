package envoy

import (
	"slices"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/destinationrule"
	"isthmus.dev/isthmus/xds/envoy/gateway"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/transport"
)

// passBySNI has one chain for each name that the server's hosts admit, so that no
// name leads anywhere else and the connections of a service outlive changes of
// others. What asks for no name, for another, or speaks no protocol of the mesh
// finds no chain.
func (b *builder) passBySNI(p *gatewayPort, s *gatewayServer) []*listenerv3.FilterChain {
	if !b.facet.SNIDNAT {
		b.leaveOut(resource.Reason{Code: resource.ReasonTLS, Cause: s.object.Key, Message: s.title() + ".tls.mode: AUTO_PASSTHROUGH needs a router in sni-dnat mode, in a namespace where gateways may be (gatewayNamespaces of MeshSettings); nothing listens for the server's hosts"})
		return nil
	}
	var chains []*listenerv3.FilterChain
	for _, name := range b.passable(s) {
		if p.passed[name] {
			continue
		}
		p.passed[name] = true
		match := &listenerv3.FilterChainMatch{TransportProtocol: "tls", ServerNames: []string{name}, ApplicationProtocols: transport.MeshProtocols()}
		tcp := resource.NewTCP(name)
		tcp.StatPrefix = p.listener()
		chains = append(chains, &listenerv3.FilterChain{Name: name, FilterChainMatch: match, Filters: []*listenerv3.Filter{resource.Filter(resource.TCPProxyFilter, tcp)}})
	}
	if len(chains) == 0 {
		b.leaveOut(resource.Reason{Code: resource.ReasonNoDestination, Cause: s.object.Key, Message: s.title() + ": no service of the mesh has one of its hosts; nothing listens for them"})
	}
	return chains
}

// passable are the names of the clusters that the server's hosts admit, sorted.
func (b *builder) passable(s *gatewayServer) []string {
	_ = slices.Collect(b.reader.ObjectsOf(destinationrule.Kind)) // subsets come and go with them
	b.reader.Mesh()
	apart := &builder{facet: node.Facet{Scope: node.ScopePassed, Namespace: b.facet.Namespace}, reader: b.reader.Apart()}
	var names []string
	for svc := range b.reader.Specs() {
		if !apart.facet.Covers(svc) || !s.admits(svc) {
			continue
		}
		if headless(svc) {
			svc, _ = b.reader.Endpoints(svc.Key)
			for _, p := range pods(svc) {
				names = append(names, p.passedNames()...)
			}
		}
		subsets := []string{""}
		for _, subset := range apart.ruling(svc).Subsets {
			subsets = append(subsets, subset.GetName())
		}
		names = append(names, passedNames(resource.ClusterType, svc, subsets)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// admits tells that the server's hosts let connections for the service pass:
// NAMESPACE/HOST is of that namespace alone.
func (s *gatewayServer) admits(svc *federation.Service) bool {
	return slices.ContainsFunc(s.hosts, func(h gateway.Host) bool {
		return (h.Namespace == "" || h.Namespace == svc.Key.Namespace) && resource.Covers(h.Name, string(svc.Key.Hostname))
	})
}
