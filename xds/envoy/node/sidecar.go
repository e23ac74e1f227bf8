package node

import (
	"cmp"
	"strings"

	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/resource"
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
var inboundFacets = facets{
	resource.ListenerType: func(all []Facet, n Node, c effectiveConfig) []Facet {
		before := len(all)
		all = n.appendInbound(all, c, n.Type == Sidecar)
		for i := range all[before:] {
			all[before+i].Transparent = n.Transparent // clusters are the same in both modes
		}
		return all
	},
	resource.ClusterType: func(all []Facet, n Node, c effectiveConfig) []Facet {
		return n.appendInbound(all, c, c.inbound != "" || n.Stats && n.Type == Sidecar)
	},
}

func (n Node) appendInbound(all []Facet, c effectiveConfig, wanted bool) []Facet {
	if !wanted || !n.Capture && c.inbound == "" {
		return all
	}
	return append(all, Facet{
		Scope: ScopeInbound, Cluster: n.inboundCluster(), Network: cmp.Or(c.network, n.Network), Namespace: n.Namespace,
		Addresses: n.addressList(), IPv6: n.hasIPv6(), Identity: n.Identity, Agent: n.Agent, Labels: c.labels, Egress: c.imports,
		Uncaptured: !n.Capture, extras: Extras{Sidecar: c.inbound}.ref(),
	})
}

// inboundCluster is whose endpoints at the proxy's addresses are the proxy's own. A workload that
// registers itself is an endpoint of the mesh, of no cluster that confirms its node.
func (n Node) inboundCluster() federation.ClusterID {
	if n.Group != "" {
		return ""
	}
	return n.Cluster
}

// captureFacets is that of the entry of captured connections, which says what of a Sidecar cannot be.
func captureFacets(all []Facet, n Node, c effectiveConfig) []Facet {
	if n.Type != Sidecar || !n.Capture {
		return all
	}
	f := Facet{
		Scope: ScopeCapture, IPv6: n.hasIPv6(), Transparent: n.Transparent, Outbound: c.outbound, EgressProxy: c.egressProxy.cluster,
		extras: Extras{Sidecar: cmp.Or(c.bound, c.egressProxy.lost)}.ref(),
	}
	if c.bound != "" {
		f.Port = n.HTTPProxyPort
	}
	return append(all, f)
}

// boundFacets are those of the listeners at addresses of their own for what the workload sends.
func boundFacets(all []Facet, n Node, c effectiveConfig) []Facet {
	if c.bound == "" || n.Type != Sidecar {
		return all
	}
	return append(all, Facet{
		Scope: ScopeBound, Cluster: n.Cluster, Network: cmp.Or(c.network, n.Network), Namespace: n.Namespace,
		Domain: n.Domain, Port: n.HTTPProxyPort,
		IPv6: n.hasIPv6(), Agent: n.Agent, Labels: c.labels, Egress: c.egress, Outbound: c.outbound,
		EgressProxy: c.egressProxy.cluster, Automatic: n.DNSCapture,
		Uncaptured: !n.Capture, extras: Extras{Sidecar: c.bound}.ref(),
	})
}

// SidecarIn is the Sidecar that the facet names; nil: it names none.
func SidecarIn(f Facet, r *federation.Reader) *federation.Object {
	namespace, name, named := strings.Cut(f.Extras().Sidecar, "/")
	if !named {
		return nil
	}
	o, _ := r.Object(federation.SidecarKind.Key(namespace, name))
	return o
}
