// Package facet opens facets: a View is a snapshot as the proxies of one facet see it,
// and what a build for them notes. What several scopes share are functions over a View,
// in the rooms beside this one.
package facet

import (
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// View is a snapshot as the proxies of a facet see it, for one build, and what that
// build notes.
type View struct {
	Facet   node.Facet
	Reader  *federation.Reader
	Reasons []resource.Reason
	// GatewayHops are the endpoints behind gateways, for Explain; else nil.
	GatewayHops map[*federation.Endpoint]GatewayHop
	// Causes are what virtual hosts and filters are made of, for Causes; else nil.
	Causes *Causes
}

// GatewayHop is the gateways through which an endpoint is reached.
type GatewayHop struct {
	Gateways []federation.Gateway
	Dead     bool // probes reach none of the gateways
}

// Open is the facet's view of the snapshot that the reader reads.
func Open(f node.Facet, r *federation.Reader) *View {
	return &View{Facet: f, Reader: r.For(f.Objects)}
}

// LeaveOut notes why something is not in what is built.
func (v *View) LeaveOut(r resource.Reason) { v.Reasons = append(v.Reasons, r) }

// Sees reports whether the facet's proxies know of the service.
func (v *View) Sees(s *federation.Service) bool {
	everyone := v.Facet.Egress == "" && node.IsPublic(s)
	return everyone || v.Facet.Covers(s)
}

// Exposes reports whether what the facet's proxies send to the port may reach the service, of
// which they know.
func (v *View) Exposes(s *federation.Service, port uint16) bool {
	return v.Facet.Exposes(s.Key.Namespace, s.Key.Hostname, port)
}

// Network is that of the facet's proxies.
func (v *View) Network() federation.NetworkID {
	if v.Facet.Network != "" {
		return v.Facet.Network
	}
	if v.Facet.Cluster != "" {
		if c, ok := v.Reader.Cluster(v.Facet.Cluster); ok {
			return c.Network()
		}
	}
	return federation.DefaultNetwork
}

// Networks reads each network once.
func (v *View) Networks() func(federation.NetworkID) *federation.Network {
	read := map[federation.NetworkID]*federation.Network{}
	return func(id federation.NetworkID) *federation.Network {
		n, known := read[id]
		if !known {
			n, _ = v.Reader.Network(id)
			read[id] = n
		}
		return n
	}
}
