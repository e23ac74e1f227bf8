package envoy

import "isthmus.dev/isthmus/federation"

// What a proxy says of its own network, locality and labels is a hint: where a
// registry has an entry of its workload, that holds (S19). Where none has, and the
// proxy had to prove who it is, a gateway has none of them, and no credentials: a
// valid certificate of any workload says nothing about them (R04).

// View is a node as a snapshot has it: what registries know of its workload, and
// what configuration makes of it.
type View struct {
	node    Node // with network, locality and labels as they count
	bearing bearing
	known   bool // a registry knows the workload
}

// ViewOf derives the view of a node. What it was derived from is in r.Deps()
// afterwards.
func ViewOf(n Node, r *federation.Reader) View {
	passes := n.RouterMode == SNIDNAT && n.serves(r) == nil
	n, known := n.registered(r)
	if !passes {
		n.RouterMode = Standard
	}
	return View{node: n, bearing: bearingOn(n, r), known: known}
}

// HasCredentials tells that the node may have the secrets of Gateways that select
// it. Of which namespace these secrets are is not the view's to say: that of the node.
func (v View) HasCredentials() bool {
	return v.node.Type != Sidecar && (v.known || !v.node.Proven)
}

// Facets returns the facets of the node for resources of that type. The node's
// resources are the union of what Build makes for its facets; where Build makes
// a name in several of them, the first facet has it.
func (v View) Facets(t Type) []Facet {
	n, c := v.node, v.bearing
	if n.GRPC {
		return n.grpcFacets(t, c)
	}
	switch t {
	case ClusterType:
		return n.clusterFacets(c)
	case EndpointType:
		return n.endpointFacets(c)
	case ListenerType:
		return n.listenerFacets(c)
	case RouteType:
		return n.routeFacets(c)
	}
	return nil
}

// Facets are those of the node's view of the snapshot.
func Facets(t Type, n Node, s *federation.Snapshot) []Facet { return ViewOf(n, s.Read()).Facets(t) }
