package node

import (
	"cmp"
	"strings"

	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
)

// inboundOf names the Sidecar that says how the workload is reached: NAMESPACE/NAME; empty: it
// says nothing of it.
func inboundOf(o *federation.Object) string {
	spec, _ := o.Spec.(*networking.Sidecar)
	if len(spec.GetIngress()) == 0 && spec.GetInboundConnectionPool() == nil {
		return ""
	}
	return o.Key.Namespace + "/" + o.Key.Name
}

// inboundFacets are those of what the workload receives. Without a redirection of its connections
// there are the listeners of a Sidecar alone.
func inboundFacets(n Node, c bearing) []Facet {
	if !n.Capture && c.inbound == "" {
		return nil
	}
	return []Facet{{
		Scope: ScopeInbound, Cluster: n.inboundCluster(), Network: cmp.Or(c.network, n.Network), Namespace: n.Namespace,
		Addresses: n.addressList(), IPv6: n.hasIPv6(), Identity: n.Identity, Agent: n.Agent, Labels: c.labels, Egress: c.egress,
		Sidecar: c.inbound, Uncaptured: !n.Capture,
	}}
}

// SidecarIn is the Sidecar that says how the workload of the facet's proxies is reached; nil: none
// does.
func SidecarIn(f Facet, r *federation.Reader) *federation.Object {
	namespace, name, named := strings.Cut(f.Sidecar, "/")
	if !named {
		return nil
	}
	o, _ := r.Object(federation.ObjectKey{Group: SidecarKind.Group, Kind: SidecarKind.Name, Namespace: namespace, Name: name})
	return o
}
