package envoy

import (
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/xds/envoy/check"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// setBalancing chooses among endpoints: in turn, unless the policy says another
// way.
func (b *builder) setBalancing(c *clusterv3.Cluster, d destination) {
	balancer := d.policy.GetLoadBalancer()
	if d.passthrough() {
		return
	}
	switch balancer.GetSimple() {
	case networking.LoadBalancerSettings_LEAST_REQUEST, networking.LoadBalancerSettings_LEAST_CONN:
		c.LbPolicy = clusterv3.Cluster_LEAST_REQUEST
	case networking.LoadBalancerSettings_RANDOM:
		c.LbPolicy = clusterv3.Cluster_RANDOM
	}
	if d.byLocality() && d.eds() {
		c.CommonLbConfig.LocalityConfigSpecifier = &clusterv3.Cluster_CommonLbConfig_LocalityWeightedLbConfig_{
			LocalityWeightedLbConfig: &clusterv3.Cluster_CommonLbConfig_LocalityWeightedLbConfig{},
		}
	}
	hash := balancer.GetConsistentHash()
	switch {
	case hash == nil:
	case hash.GetMaglev() != nil:
		c.LbPolicy = clusterv3.Cluster_MAGLEV
		b.setTable(c, d, hash.GetMaglev().GetTableSize())
	default:
		c.LbPolicy = clusterv3.Cluster_RING_HASH
		b.setRing(c, d, max(hash.GetRingHash().GetMinimumRingSize(), hash.GetMinimumRingSize()))
	}
}

func (b *builder) setRing(c *clusterv3.Cluster, d destination, size uint64) {
	if size > check.MaxRingSize {
		b.leaveOut(d.ignored("loadBalancer.consistentHash.ringHash.minimumRingSize", fmt.Sprintf("a ring has at most %d places", check.MaxRingSize)))
		size = check.MaxRingSize
	}
	if size > 0 {
		c.LbConfig = &clusterv3.Cluster_RingHashLbConfig_{RingHashLbConfig: &clusterv3.Cluster_RingHashLbConfig{MinimumRingSize: wrapperspb.UInt64(size)}}
	}
}

func (b *builder) setTable(c *clusterv3.Cluster, d destination, size uint64) {
	switch {
	case size == 0:
	case !check.IsTableSize(size):
		b.leaveOut(d.ignored("loadBalancer.consistentHash.maglev.tableSize", fmt.Sprintf("a table has a prime number of places, at most %d", check.MaxTableSize)))
	default:
		c.LbConfig = &clusterv3.Cluster_MaglevLbConfig_{MaglevLbConfig: &clusterv3.Cluster_MaglevLbConfig{TableSize: wrapperspb.UInt64(size)}}
	}
}

// ignored says that a field of the destination's policy has no effect.
func (d destination) ignored(field, why string) resource.Reason {
	return resource.Reason{Code: resource.ReasonRuleIgnored, Cause: d.rule(), Message: d.ruledBy() + ": trafficPolicy." + field + " has no effect: " + why}
}
