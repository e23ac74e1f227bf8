package destinationrule

import (
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/check"
)

// maxRingSize bounds what a policy asks of every proxy that sees the service. Envoy
// accepts check.MaxRingSize, but it makes a ring for each port whenever an endpoint
// changes, and takes no configuration meanwhile: 20 s or more (ADR 0063).
const maxRingSize = 64 << 10

// Ignored is a field of a policy that has no effect, and why.
type Ignored struct{ Field, Why string }

// SetBalancing chooses among endpoints: in turn, unless the policy says another
// way. weighted reports whether localities carry the weights of their endpoints.
func SetBalancing(c *clusterv3.Cluster, policy *networking.TrafficPolicy, weighted bool) (without []Ignored) {
	balancer := policy.GetLoadBalancer()
	switch balancer.GetSimple() {
	case networking.LoadBalancerSettings_LEAST_REQUEST, networking.LoadBalancerSettings_LEAST_CONN:
		c.LbPolicy = clusterv3.Cluster_LEAST_REQUEST
	case networking.LoadBalancerSettings_RANDOM:
		c.LbPolicy = clusterv3.Cluster_RANDOM
	}
	if weighted {
		c.CommonLbConfig.LocalityConfigSpecifier = &clusterv3.Cluster_CommonLbConfig_LocalityWeightedLbConfig_{
			LocalityWeightedLbConfig: &clusterv3.Cluster_CommonLbConfig_LocalityWeightedLbConfig{},
		}
	}
	hash := balancer.GetConsistentHash()
	warmup := slowStart(balancer)
	if hash != nil || c.GetLbPolicy() == clusterv3.Cluster_RANDOM {
		if warmup != nil {
			without = []Ignored{{"loadBalancer.warmup", "only ROUND_ROBIN and LEAST_REQUEST warm endpoints up"}}
		}
		warmup = nil
	}
	switch {
	case hash == nil:
		setSlowStart(c, warmup)
		return without
	case hash.GetMaglev() != nil:
		c.LbPolicy = clusterv3.Cluster_MAGLEV
		return append(without, setTable(c, hash.GetMaglev().GetTableSize())...)
	default:
		c.LbPolicy = clusterv3.Cluster_RING_HASH
		return append(without, SetRing(c, max(hash.GetRingHash().GetMinimumRingSize(), hash.GetMinimumRingSize()))...)
	}
}

// slowStart is how new endpoints get their share; nil: at once.
func slowStart(balancer *networking.LoadBalancerSettings) *clusterv3.Cluster_SlowStartConfig {
	warmup := balancer.GetWarmup()
	if warmup == nil {
		warmup = &networking.WarmupConfiguration{Duration: balancer.GetWarmupDurationSecs()}
	}
	if positive(warmup.GetDuration()) == nil {
		return nil
	}
	slow := &clusterv3.Cluster_SlowStartConfig{SlowStartWindow: warmup.GetDuration()}
	if percent := warmup.GetMinimumPercent(); percent != nil {
		slow.MinWeightPercent = &typev3.Percent{Value: min(max(percent.GetValue(), 0), 100)}
	}
	if aggression := warmup.GetAggression().GetValue(); aggression >= 1 {
		slow.Aggression = &corev3.RuntimeDouble{DefaultValue: aggression}
	}
	return slow
}

func setSlowStart(c *clusterv3.Cluster, slow *clusterv3.Cluster_SlowStartConfig) {
	switch {
	case slow == nil:
	case c.GetLbPolicy() == clusterv3.Cluster_LEAST_REQUEST:
		c.LbConfig = &clusterv3.Cluster_LeastRequestLbConfig_{LeastRequestLbConfig: &clusterv3.Cluster_LeastRequestLbConfig{SlowStartConfig: slow}}
	default:
		c.LbConfig = &clusterv3.Cluster_RoundRobinLbConfig_{RoundRobinLbConfig: &clusterv3.Cluster_RoundRobinLbConfig{SlowStartConfig: slow}}
	}
}

// SetRing has a hash ring of at least that size; 0 is Envoy's own choice.
func SetRing(c *clusterv3.Cluster, size uint64) (without []Ignored) {
	if size > maxRingSize {
		without = []Ignored{{"loadBalancer.consistentHash.ringHash.minimumRingSize", fmt.Sprintf("a ring has at most %d places", maxRingSize)}}
		size = maxRingSize
	}
	if size > 0 {
		c.LbConfig = &clusterv3.Cluster_RingHashLbConfig_{RingHashLbConfig: &clusterv3.Cluster_RingHashLbConfig{MinimumRingSize: wrapperspb.UInt64(size)}}
	}
	return without
}

func setTable(c *clusterv3.Cluster, size uint64) []Ignored {
	switch {
	case size == 0:
	case !check.IsTableSize(size):
		return []Ignored{{
			"loadBalancer.consistentHash.maglev.tableSize",
			fmt.Sprintf("a table has a prime number of places, at most %d", check.MaxTableSize),
		}}
	default:
		c.LbConfig = &clusterv3.Cluster_MaglevLbConfig_{MaglevLbConfig: &clusterv3.Cluster_MaglevLbConfig{TableSize: wrapperspb.UInt64(size)}}
	}
	return nil
}

// Weighted reports whether localities have weights of their own in the policy's clusters.
func Weighted(policy *networking.TrafficPolicy, mesh *federation.MeshSettings) bool {
	return ByLocality(policy) || len(LocalitiesOf(policy, mesh).Distribute) > 0
}

// ByLocality reports whether the policy's balancing bends or ignores the weights
// of endpoints, so that localities carry them.
func ByLocality(policy *networking.TrafficPolicy) bool {
	if policy.GetLoadBalancer().GetConsistentHash() != nil {
		return false
	}
	switch policy.GetLoadBalancer().GetSimple() {
	case networking.LoadBalancerSettings_LEAST_REQUEST, networking.LoadBalancerSettings_LEAST_CONN, networking.LoadBalancerSettings_RANDOM:
		return true
	}
	return false
}
