package node

import (
	"fmt"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/gateway"
)

// Registered is the node as registries know its workload, and that workload; nil:
// no registry knows it.
func (n Node) Registered(r *federation.Reader) (Node, *federation.Workload) {
	found, _ := r.At(n.Place()).Registered(n.Workload())
	switch {
	case found.Workload != nil:
		n.Network, n.Labels = found.Network, found.Workload.Labels
		if found.Workload.Locality != (federation.Locality{}) {
			n.Locality = found.Workload.Locality
		}
	case n.Proven && n.Type != Sidecar:
		n.Network, n.Labels, n.Locality = "", nil, federation.Locality{}
	}
	return n, found.Workload
}

// withTopology is the node with those labels of topology by which objects select proxies, as
// registries know the node.
func (n Node) withTopology(r *federation.Reader) Node {
	keys := r.Objects().ProxyLabels()
	if !slices.ContainsFunc(keys, federation.IsTopology) {
		return n
	}
	at := federation.Topology{Cluster: n.Cluster, Locality: n.Locality}
	if slices.Contains(keys, federation.LabelNetwork) {
		at.Network = r.At(n.Place()).Network()
	}
	n.Labels = at.Labels(n.Labels, keys)
	// A comma ends a label in a facet: a locality that the proxy reports must not add labels.
	for _, key := range keys {
		if federation.IsTopology(key) && strings.Contains(n.Labels[key], ",") {
			delete(n.Labels, key)
		}
	}
	return n
}

// Serves tells why the node is not a gateway of its network (S22), as those are that
// may be in sni-dnat mode or say which gateways of others they reach: it must be in
// a namespace where gateways may be, or in that of a service that the Network object
// names; and in that network by what registries and Network objects say, not by its
// own word alone.
func Serves(n Node, s *federation.Snapshot) error { return n.serves(s.Read()) }

func (n Node) serves(r *federation.Reader) error {
	claimed := n.Network
	n, w := n.Registered(r)
	place := n.Place()
	place.Network = ""
	own := r.At(place).Network()
	if claimed != "" && claimed != own && w == nil {
		return fmt.Errorf("it says that it is in network %q, and its cluster is in %q: no registry knows its workload", claimed, own)
	}
	if r.Mesh().AllowsGateways(n.Namespace) || namedGateway(n, r) {
		return nil
	}
	return fmt.Errorf("gateways may not be in namespace %q; list it in gatewayNamespaces of MeshSettings, or name the service in the Network",
		n.Namespace)
}

// passesOn reports whether the proxy is to pass connections of other networks on: its
// mode says so, or a Gateway that selects it has a server for them, as with Istio.
func (n Node) passesOn(r *federation.Reader) bool {
	if n.Type == Sidecar || n.RouterMode == SNIDNAT {
		return n.RouterMode == SNIDNAT
	}
	return hasGateway(n, r, func(g *networking.Gateway) bool { return slices.ContainsFunc(g.GetServers(), gateway.BySNI) })
}

// hasGateway reports whether a Gateway selects the node and is as is says. None is for a sidecar.
func hasGateway(n Node, r *federation.Reader, is func(*networking.Gateway) bool) bool {
	if n.Type == Sidecar {
		return false
	}
	for o := range r.Objects().Of(federation.GatewayKind) {
		spec, ok := o.Spec.(*networking.Gateway)
		if ok && federation.MatchesLabels(n.Labels, []map[string]string{spec.GetSelector()}) && is(spec) {
			return true
		}
	}
	return false
}

// namedGateway reports whether the object of the node's network has a gateway by a
// service of the node's namespace.
func namedGateway(n Node, r *federation.Reader) bool {
	key := federation.ObjectKey{Group: federation.MeshGroup, Kind: federation.NetworkKind.Name, Name: string(r.At(n.Place()).Network())}
	o, ok := r.Object(key)
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
