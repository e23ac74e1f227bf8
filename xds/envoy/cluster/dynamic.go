package cluster

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	dynamicv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/dynamic_forward_proxy/v3"
	upstreamhttpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"

	"isthmus.dev/isthmus/xds/envoy/destination"
	"isthmus.dev/isthmus/xds/envoy/destinationrule"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// setDynamic sends to the names for which callers ask, as the filters in front of the cluster
// resolved them. Envoy wants TLS to ask for that name and to verify it, unless the cluster allows
// something else: the rule about TLS decides.
func setDynamic(v *facet.View, c *clusterv3.Cluster, d destination.Destination, options *upstreamhttpv3.HttpProtocolOptions) {
	auto := options.GetUpstreamHttpProtocolOptions()
	names := resource.DynamicNames(v.Reader.Settings().Addresses, v.Facet.Lookup)
	c.LbPolicy = clusterv3.Cluster_CLUSTER_PROVIDED
	c.ClusterDiscoveryType = &clusterv3.Cluster_ClusterType{ClusterType: &clusterv3.Cluster_CustomClusterType{
		Name: resource.DynamicCluster,
		TypedConfig: resource.Any(&dynamicv3.ClusterConfig{
			ClusterImplementationSpecifier: &dynamicv3.ClusterConfig_DnsCacheConfig{DnsCacheConfig: names},
			AllowInsecureClusterOptions:    !auto.GetAutoSni() || !auto.GetAutoSanValidation(),
		}),
	}}
	if d.Policy.GetLoadBalancer() != nil {
		destination.ReportIgnored(v, d, []destinationrule.Ignored{{
			Field: "loadBalancer",
			Why:   "the name that the caller asks for decides where connections go",
		}})
	}
}
