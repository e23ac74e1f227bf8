package envoyfilter

import (
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
	api "istio.io/api/networking/v1alpha3"

	"isthmus.dev/isthmus/xds/envoy/resource"
)

func (j *job) meetsCluster(c *clusterv3.Cluster) bool {
	context := j.Spec.GetMatch().GetContext()
	port, ofPort := resource.ParseInbound(c.GetName())
	inbound := ofPort || c.GetName() == resource.InboundPassthroughCluster
	if inbound && context == api.EnvoyFilter_SIDECAR_OUTBOUND || !inbound && context == api.EnvoyFilter_SIDECAR_INBOUND {
		return false
	}
	match := j.Spec.GetMatch().GetCluster()
	if match.GetName() != "" {
		return match.GetName() == c.GetName()
	}
	id, _ := clusterID(c.GetName())
	if ofPort {
		id.Port = port
	}
	return (match.GetPortNumber() == 0 || match.GetPortNumber() == uint32(id.Port)) &&
		(match.GetService() == "" || strings.EqualFold(match.GetService(), string(id.Host))) &&
		(match.GetSubset() == "" || match.GetSubset() == id.Subset)
}

// clusterID reads the name of a cluster of a service.
func clusterID(name string) (resource.ClusterID, bool) {
	if id, ok := resource.ParseClusterName(name); ok {
		return id, true
	}
	return resource.ParseServerName(name)
}

func patchCluster(j *job, m proto.Message) (proto.Message, bool, error) {
	c, is := m.(*clusterv3.Cluster)
	if !is || j.op == add || !j.meetsCluster(c) {
		return m, false, nil
	}
	if j.op == remove {
		return nil, true, nil
	}
	err := j.merge(c)
	complete(c)
	return c, true, err
}

// complete fills in what the hub says about endpoints and Envoy does not need: weights are equal,
// localities unknown.
func complete(c *clusterv3.Cluster) {
	for _, group := range c.GetLoadAssignment().GetEndpoints() {
		if group.Locality == nil {
			group.Locality = &corev3.Locality{}
		}
		if group.LoadBalancingWeight == nil {
			group.LoadBalancingWeight = wrapperspb.UInt32(1)
		}
	}
}
