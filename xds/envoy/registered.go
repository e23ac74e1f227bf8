package envoy

import (
	"fmt"
	"strings"

	"isthmus.dev/isthmus/federation"
)

// What a proxy says of its own network, locality and labels is a hint: where a
// registry has an entry of its workload, that holds (S19).

// Registered is what the snapshot's registries know of the node's workload. It can
// be compared: when it becomes another, the node's facets may.
func Registered(n Node, s *federation.Snapshot) federation.Registration {
	r, _ := s.Registered(n.Place(), n.Workload())
	return r
}

// registered is the node as registries know its workload, if they do.
func (n Node) registered(s *federation.Snapshot) Node {
	r := Registered(n, s)
	if r.Workload == nil {
		return n
	}
	n.Network, n.Labels = r.Network, r.Workload.Labels
	if r.Workload.Locality != (federation.Locality{}) {
		n.Locality = r.Workload.Locality
	}
	return n
}

// Serves tells why the node is no gateway of its network (S22), as those are that
// may be in sni-dnat mode or say which gateways of others they reach: it must be in
// a namespace where gateways may be, or in that of a service that the Network object
// names; and in that network by what registries and Network objects say, not by its
// own word alone.
func Serves(n Node, s *federation.Snapshot) error {
	claimed := n.Network
	n = n.registered(s)
	place := n.Place()
	place.Network = ""
	own := s.NetworkOf(place)
	if n.Network != "" && n.Network != own && Registered(n, s).Workload == nil {
		return fmt.Errorf("it says that it is in network %q, and its cluster is in %q: no registry knows its workload", claimed, own)
	}
	if s.Mesh().AllowsGateways(n.Namespace) || namedGateway(n, s) {
		return nil
	}
	return fmt.Errorf("gateways may not be in namespace %q; list it in gatewayNamespaces of MeshSettings, or name the service in the Network", n.Namespace)
}

// namedGateway tells that the object of the node's network has a gateway by a
// service of the node's namespace.
func namedGateway(n Node, s *federation.Snapshot) bool {
	key := federation.ObjectKey{Group: federation.MeshGroup, Kind: federation.NetworkKind.Name, Name: string(s.NetworkOf(n.Place()))}
	o, ok := s.Object(key)
	if !ok {
		return false
	}
	spec, ok := o.Spec.(*federation.NetworkObject)
	if !ok {
		return false
	}
	for _, g := range spec.Gateways {
		namespace := g.Service.Namespace
		if labels := strings.SplitN(string(g.Service.Hostname), ".", 4); namespace == "" && len(labels) > 2 && labels[2] == "svc" {
			namespace = labels[1]
		}
		if namespace != "" && namespace == n.Namespace {
			return true
		}
	}
	return false
}
