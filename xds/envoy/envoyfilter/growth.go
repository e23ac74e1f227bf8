package envoyfilter

import (
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
	api "istio.io/api/networking/v1alpha3"
)

// A patch that names no resource may change each of very many. What such patches add to one of
// them is bounded, so that all together they add to a proxy in proportion to its mesh (ADR 179).
const (
	growthOfCluster = 16 << 10
	growthOfRoute   = 16 << 10 // of each route in a route configuration
	growthOfChain   = 64 << 10 // of each filter chain in a listener
)

// growth is how many bytes patches that name no resource may still add to this one.
type growth int

// growthOf is the growth of a resource before it is patched. The listeners that a proxy has once
// have no bound of this kind.
func growthOf(m proto.Message) growth {
	switch m := m.(type) {
	case *clusterv3.Cluster:
		return growthOfCluster
	case *routev3.RouteConfiguration:
		routes := 1
		for _, host := range m.GetVirtualHosts() {
			routes += len(host.GetRoutes())
		}
		return growth(min(growthOfRoute*routes, maxResource))
	case *listenerv3.Listener:
		if !isEntry(m) {
			return growth(min(growthOfChain*max(len(chainsOf(m)), 1), maxResource))
		}
	}
	return maxResource
}

// suffices reports whether everything that the resource has more than before is within the growth.
func (g growth) suffices(before, now proto.Message) bool {
	return now == nil || proto.Size(now)-proto.Size(before) <= int(g)
}

// take has the patch use up of the growth what it adds. An error means that too little is left.
func (g *growth) take(j *job, before, now proto.Message) error {
	if now == nil || j.namesResource() {
		return nil
	}
	added := proto.Size(now) - proto.Size(before)
	if added > int(*g) {
		return fmt.Errorf("it adds %d bytes, and patches that name no resource may add %d more: name the resources in match, or make the value smaller", added, *g)
	}
	*g -= growth(max(added, 0))
	return nil
}

// namesResource reports whether the match has a name of the resource, or of its service.
func (j *job) namesResource() bool {
	match := j.Spec.GetMatch()
	cluster, listener, routes := match.GetCluster(), match.GetListener(), match.GetRouteConfiguration()
	switch j.Spec.GetApplyTo() {
	case api.EnvoyFilter_CLUSTER:
		return cluster.GetName() != "" || cluster.GetService() != ""
	case api.EnvoyFilter_ROUTE_CONFIGURATION, api.EnvoyFilter_VIRTUAL_HOST, api.EnvoyFilter_HTTP_ROUTE:
		return routes.GetName() != "" || routes.GetVhost().GetName() != "" || routes.GetVhost().GetDomainName() != ""
	}
	return listener.GetName() != ""
}
