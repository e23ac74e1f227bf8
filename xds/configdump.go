package xds

import (
	"cmp"
	"slices"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/envoy"
)

// dumpedResource is a resource as a config dump has it.
type dumpedResource struct {
	name, version string
	body          *anypb.Any
}

// dumpPart is the part of a config dump with the resources of one type.
type dumpPart struct {
	kind envoy.Type
	of   func([]dumpedResource) proto.Message
}

// dumpParts are those that Istio's tools compare with the proxy's own, in Envoy's order.
func dumpParts() []dumpPart {
	return []dumpPart{{envoy.ClusterType, clustersDump}, {envoy.ListenerType, listenersDump}, {envoy.RouteType, routesDump}}
}

// ConfigDump is what a stream of the server was sent last, in the form of Envoy's own config
// dump and, as there, without what is sensitive. It waits neither for the stream nor for a build.
func ConfigDump(s *Server, stream fleet.Key) (*adminv3.ConfigDump, error) {
	dump, latest := &adminv3.ConfigDump{}, s.options.Fleet.Latest()
	for _, part := range dumpParts() {
		resources, err := dumpedOf(deliveredOf(latest, stream, part.kind), part.kind)
		if err != nil {
			return nil, err
		}
		packed, err := anypb.New(part.of(resources))
		if err != nil {
			return nil, err
		}
		dump.Configs = append(dump.Configs, packed)
	}
	return dump, nil
}

// dumpedOf are the resources of a type that a stream was sent last, by name; nil: none.
func dumpedOf(of *delivered, kind envoy.Type) ([]dumpedResource, error) {
	var all []dumpedResource
	for _, r := range sentLast(of) {
		m, err := r.unsensitive(kind)
		if err != nil {
			return nil, err
		}
		body, err := anypb.New(m)
		if err != nil {
			return nil, err
		}
		all = append(all, dumpedResource{r.name, r.version, body})
	}
	slices.SortFunc(all, func(a, b dumpedResource) int { return cmp.Compare(a.name, b.name) })
	return all, nil
}

// sentLast are the resources that were sent last and have a body; of may be nil.
func sentLast(of *delivered) []*resource {
	if of == nil {
		return nil
	}
	var all []*resource
	for _, r := range of.sent() {
		if !r.late && r.hasBody() {
			all = append(all, r)
		}
	}
	return all
}

func clustersDump(all []dumpedResource) proto.Message {
	dump := &adminv3.ClustersConfigDump{}
	for _, r := range all {
		dump.DynamicActiveClusters = append(dump.DynamicActiveClusters,
			&adminv3.ClustersConfigDump_DynamicCluster{VersionInfo: r.version, Cluster: r.body})
	}
	return dump
}

func listenersDump(all []dumpedResource) proto.Message {
	dump := &adminv3.ListenersConfigDump{}
	for _, r := range all {
		dump.DynamicListeners = append(dump.DynamicListeners, &adminv3.ListenersConfigDump_DynamicListener{
			Name: r.name, ActiveState: &adminv3.ListenersConfigDump_DynamicListenerState{VersionInfo: r.version, Listener: r.body},
		})
	}
	return dump
}

func routesDump(all []dumpedResource) proto.Message {
	dump := &adminv3.RoutesConfigDump{}
	for _, r := range all {
		dump.DynamicRouteConfigs = append(dump.DynamicRouteConfigs,
			&adminv3.RoutesConfigDump_DynamicRouteConfig{VersionInfo: r.version, RouteConfig: r.body})
	}
	return dump
}
