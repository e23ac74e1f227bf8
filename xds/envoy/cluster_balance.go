package envoy

import (
	"fmt"
	"math/big"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1"
)

// What Envoy takes.
const (
	maxRingSize  = 8 << 20
	maxTableSize = 5000011
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
	if size > maxRingSize {
		b.leaveOut(d.ignored("loadBalancer.consistentHash.ringHash.minimumRingSize", fmt.Sprintf("a ring has at most %d places", maxRingSize)))
		size = maxRingSize
	}
	if size > 0 {
		c.LbConfig = &clusterv3.Cluster_RingHashLbConfig_{RingHashLbConfig: &clusterv3.Cluster_RingHashLbConfig{MinimumRingSize: wrapperspb.UInt64(size)}}
	}
}

func (b *builder) setTable(c *clusterv3.Cluster, d destination, size uint64) {
	switch {
	case size == 0:
	case !isTableSize(size):
		b.leaveOut(d.ignored("loadBalancer.consistentHash.maglev.tableSize", fmt.Sprintf("a table has a prime number of places, at most %d", maxTableSize)))
	default:
		c.LbConfig = &clusterv3.Cluster_MaglevLbConfig_{MaglevLbConfig: &clusterv3.Cluster_MaglevLbConfig{TableSize: wrapperspb.UInt64(size)}}
	}
}

func isTableSize(size uint64) bool {
	return size <= maxTableSize && new(big.Int).SetUint64(size).ProbablyPrime(0)
}

// ignored says that a field of the destination's policy has no effect.
func (d destination) ignored(field, why string) Reason {
	return Reason{Code: ReasonRuleIgnored, Cause: d.rule(), Message: d.ruledBy() + ": trafficPolicy." + field + " has no effect: " + why}
}
