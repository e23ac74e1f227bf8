package node

import (
	"cmp"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// Variant is what a node reports about itself, on which the resources of its proxy depend
// and which neither its proof nor a registry confirms. Each variant may have the hub
// build most resources once more, so that an identity has few (R07). It is a valid map
// key.
type Variant struct {
	Type           Type
	RouterMode     RouterMode
	Domain         string
	HTTPProxyPort  uint16
	DNSCapture     bool
	AgentNames     bool
	Capture        bool
	Transparent    bool
	Identity       bool
	Agent          bool
	Stats          bool
	Delimited      bool
	GRPC           bool
	IPv6           bool
	Lookup         resource.Lookup
	Network        federation.NetworkID // empty also where the cluster or a registry says it
	Locality       federation.Locality  // empty also where a registry says it
	SelectedLabels string               // empty also where a registry says them
	PriorityLabels string               // the same
	Settings       Settings
	Patches        string // of EnvoyFilters, as far as they look at the proxy's version and metadata
}

// Variant is that of the view's node.
func (v View) Variant() Variant {
	n := v.node
	said := Variant{
		Type: n.Type, RouterMode: n.RouterMode, Domain: n.Domain, HTTPProxyPort: n.HTTPProxyPort,
		DNSCapture: n.DNSCapture, AgentNames: n.AgentNames, Capture: n.Capture, Transparent: n.Transparent,
		Identity: n.Identity, Agent: n.Agent, Stats: n.Stats, Delimited: n.Delimited, GRPC: n.GRPC, IPv6: n.hasIPv6(), Lookup: n.lookup(),
		Settings: n.Settings, Patches: v.config.patches.claimed,
	}
	if !v.placed {
		said.Locality = n.Locality
	}
	if !v.known {
		said.Network, said.SelectedLabels = cmp.Or(v.config.network, n.Network), v.config.labels
		said.PriorityLabels = v.config.priority
	}
	return said
}
