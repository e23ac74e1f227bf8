package node

import (
	"fmt"

	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// What a proxy reports about its own network, locality and labels is a hint: where a
// registry has an entry of its workload, that holds (S19). Where none has, and the
// proxy had to prove who it is, a gateway has none of them, and no credentials: a
// valid certificate of any workload says nothing about them (R04).

// View is a node as a snapshot has it: what registries know about its workload, and
// its effective configuration.
type View struct {
	node    Node // with network, locality and labels as they count
	config  effectiveConfig
	known   bool // a registry knows the workload
	placed  bool // and its locality
	called  bool // with mutual TLS: the registry says that the workload takes it
	fronted bool // a Gateway selects it
}

// ViewOf derives the view of a node. What it was derived from is in r.Deps()
// afterwards.
func ViewOf(n Node, r *federation.Reader) View {
	claimed := n
	n, w := n.Registered(r.For(n.Cluster))
	selected := n.withTopology(r)
	if selected.passesOn(r) && claimed.serves(r) == nil {
		n.RouterMode = SNIDNAT
	} else {
		n.RouterMode = Standard
	}
	selected.RouterMode = n.RouterMode
	return View{
		node: n, config: effectiveConfigOf(selected, r), known: w != nil, placed: w != nil && w.Locality != (federation.Locality{}),
		called: w != nil && w.TLSMode == federation.MutualTLS, fronted: hasGateway(selected, r, func(*networking.Gateway) bool { return true }),
	}
}

// Disagrees tells why the node must not be served: its callers would speak mutual
// TLS and it plain text, so that every call would fail while it is ready (R34).
// Having them speak plain text instead is not an option: every client that may connect
// as the workload could turn its mutual TLS off.
func (v View) Disagrees() error {
	n := v.node
	if !v.called || n.Identity || n.Type != Sidecar || !n.Capture {
		return nil
	}
	return fmt.Errorf("callers speak mutual TLS with workload %s of cluster %s (security.istio.io/tlsMode: istio), but its proxy has no identity: "+
		"set IDENTITY_SOURCE: %s in the proxy's metadata, or remove the label", n.Workload(), n.Cluster, identityFromHub)
}

// HasCredentials reports whether the node may have the secrets to which the resources of
// Referring refer. Of which namespace these secrets are is not the view's to say: that of the node.
func (v View) HasCredentials() bool { return v.known || !v.node.Proven }

// Referring are the facets whose resources may refer to credentials, by type: listeners, because
// of the Gateways that select the node, and clusters, because of DestinationRules. That it says
// it is a gateway is not enough for the latter, which select nobody: some Gateway must select it.
// Sidecars have those of rules that select them.
func (v View) Referring() map[resource.Type][]Facet {
	var clusters []Facet
	for _, f := range v.Facets(resource.ClusterType) {
		if f.Balanced && v.fronted || v.node.Type == Sidecar && f.Has(NamespaceRules) && !f.GRPC {
			clusters = append(clusters, f)
		}
	}
	if v.node.Type == Sidecar {
		return map[resource.Type][]Facet{resource.ClusterType: clusters}
	}
	return map[resource.Type][]Facet{resource.ClusterType: clusters, resource.ListenerType: v.Facets(resource.ListenerType)}
}

// Facets are those of the node's view of the snapshot.
func Facets(t resource.Type, n Node, s *federation.Snapshot) []Facet {
	return ViewOf(n, s.Read()).Facets(t)
}

// Node is the node with network, locality and labels as they count.
func (v View) Node() Node { return v.node }

// Sees reports whether the node knows of the service.
func (v View) Sees(s *federation.Service) bool {
	return v.imported().Covers(s)
}

// Exposes reports whether the service, of which the node knows, can be reached at the port, or by a listener of a
// Sidecar at an address of its own.
func (v View) Exposes(s *federation.Service, port uint16) bool {
	f := v.imported()
	return f.Exposes(s.Key.Namespace, s.Key.Hostname, port) || v.config.bound != "" && f.exposedApart(s.Key.Namespace, s.Key.Hostname)
}

func (v View) imported() Facet {
	return Facet{Scope: ScopeImported, Namespace: v.node.Namespace, Egress: v.config.egress, GRPC: v.node.GRPC}
}
