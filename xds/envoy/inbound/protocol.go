package inbound

import (
	"slices"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// portProtocol is what a port of the workload speaks. Where services disagree, the lesser counts.
type portProtocol int

// What a port may speak.
const (
	bytes    portProtocol = iota
	detected              // HTTP, if a connection turns out to be that
	requests              // HTTP
)

// portsOfServices are what the workload speaks on the ports of its services. A port
// that serves a service of another protocol too is left alone, and so is one that
// only the platform's probes use. They have their services if the proxies count.
func portsOfServices(v *facet.View) map[uint16]port {
	ports := map[uint16]port{}
	for _, i := range instances(v) {
		if i.Port.Protocol.Transport() != federation.TransportTCP || i.Number == 0 || i.Number == resource.InboundPort {
			continue
		}
		p, known := ports[i.Number]
		if said := protocolOf(v, i.Port); !known || said < p.protocol {
			p.protocol = said
		}
		if v.Facet.Stats && !slices.Contains(p.services, i.Service.Key) {
			p.services = append(p.services, i.Service.Key)
		}
		ports[i.Number] = p
	}
	return ports
}

// instances are those of the workload: of its own cluster, and what configuration of its own
// namespace names without a cluster, such as a machine.
func instances(v *facet.View) []federation.Instance {
	place := v.Facet.At()
	here := v.Reader.At(place)
	found := here.Instances()
	if place.Cluster == "" {
		return found
	}
	anywhere := federation.Place{Network: here.Network(), Addresses: place.Addresses}
	for _, i := range v.Reader.At(anywhere).Instances() {
		declared := i.Shard.Provider.OfConfiguration() && i.Endpoint.Cluster == ""
		if declared && i.Service.Key.Namespace == v.Facet.Namespace {
			found = append(found, i)
		}
	}
	return found
}

func protocolOf(v *facet.View, p federation.ServicePort) portProtocol {
	switch {
	case p.Protocol.IsHTTP():
		return requests
	case p.Undeclared && v.Reader.Mesh().DetectsInbound():
		return detected
	}
	return bytes
}

// inspectOn detects HTTP on the ports alone: on others a server that speaks first waits for nobody.
func inspectOn(ports []uint16) *listenerv3.ListenerFilter {
	on := make([]*listenerv3.ListenerFilterChainMatchPredicate, len(ports))
	for i, port := range ports {
		on[i] = &listenerv3.ListenerFilterChainMatchPredicate{Rule: &listenerv3.ListenerFilterChainMatchPredicate_DestinationPortRange{
			DestinationPortRange: &typev3.Int32Range{Start: int32(port), End: int32(port) + 1},
		}}
	}
	anyOf := on[0]
	if len(on) > 1 {
		anyOf = &listenerv3.ListenerFilterChainMatchPredicate{Rule: &listenerv3.ListenerFilterChainMatchPredicate_OrMatch{
			OrMatch: &listenerv3.ListenerFilterChainMatchPredicate_MatchSet{Rules: on},
		}}
	}
	f := resource.HTTPInspectorFilter()
	f.FilterDisabled = &listenerv3.ListenerFilterChainMatchPredicate{
		Rule: &listenerv3.ListenerFilterChainMatchPredicate_NotMatch{NotMatch: anyOf},
	}
	return f
}
