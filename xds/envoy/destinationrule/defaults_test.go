package destinationrule

import (
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// TestG94DefaultsOfDestinationRules: what a rule does not say is as Istio's reference has it. Where Envoy gets no value,
// its own default is meant.
func TestG94DefaultsOfDestinationRules(t *testing.T) {
	number := func(value *wrapperspb.UInt32Value, otherwise uint32) any {
		if value == nil {
			return otherwise
		}
		return value.GetValue()
	}
	duration := func(value *durationpb.Duration, otherwise time.Duration) any {
		if value == nil {
			return otherwise
		}
		return value.AsDuration()
	}
	policy := policyFrom(t, `{"outlierDetection": {}, "connectionPool": {"tcp": {"tcpKeepalive": {}}, "http": {}}, "retryBudget": {},
		"loadBalancer": {"warmup": {"duration": "60s"}}}`)
	cluster := &clusterv3.Cluster{
		ConnectTimeout:  durationpb.New(10 * time.Second),
		CircuitBreakers: &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{{}}},
	}
	SetOutlierDetection(cluster, policy.GetOutlierDetection())
	SetLimits(cluster, policy)
	SetBalancing(cluster, policy, false)
	d, limits := cluster.GetOutlierDetection(), cluster.GetCircuitBreakers().GetThresholds()[0]
	alive := cluster.GetUpstreamConnectionOptions().GetTcpKeepalive()
	slow := cluster.GetRoundRobinLbConfig().GetSlowStartConfig()
	for _, c := range []struct {
		field     string
		got, want any
	}{
		{"outlierDetection.consecutive5xxErrors", number(d.GetConsecutive_5Xx(), 5), uint32(5)},
		{"outlierDetection.consecutive5xxErrors, enforced", number(d.GetEnforcingConsecutive_5Xx(), 100), uint32(100)},
		{"outlierDetection.consecutiveGatewayErrors, enforced", number(d.GetEnforcingConsecutiveGatewayFailure(), 0), uint32(0)},
		{"outlierDetection.interval", duration(d.GetInterval(), 10*time.Second), 10 * time.Second},
		{"outlierDetection.baseEjectionTime", duration(d.GetBaseEjectionTime(), 30*time.Second), 30 * time.Second},
		{"outlierDetection.maxEjectionPercent", number(d.GetMaxEjectionPercent(), 10), uint32(10)},
		{"outlierDetection, by the rate of success", number(d.GetEnforcingSuccessRate(), 100), uint32(0)},
		{"outlierDetection.splitExternalLocalOriginErrors", d.GetSplitExternalLocalOriginErrors(), false},
		{"outlierDetection.minHealthPercent", PanicThreshold(policy), 1.0}, // 0 in Istio: then no endpoint that drains would be used
		{"connectionPool.tcp.connectTimeout", duration(cluster.GetConnectTimeout(), 0), 10 * time.Second},
		{"connectionPool.tcp.tcpKeepalive.time", alive.GetKeepaliveTime() == nil, true},         // the system's
		{"connectionPool.tcp.tcpKeepalive.interval", alive.GetKeepaliveInterval() == nil, true}, // the system's
		{"connectionPool.tcp.tcpKeepalive.probes", alive.GetKeepaliveProbes() == nil, true},     // the system's
		{"connectionPool.http.idleTimeout", commonOptions(policy) == nil, true},                 // 1h
		{"retryBudget.percent", limits.GetRetryBudget().GetBudgetPercent() == nil, true},        // 20
		{"retryBudget.minRetryConcurrency", number(limits.GetRetryBudget().GetMinRetryConcurrency(), 3), uint32(3)},
		{"loadBalancer.warmup.minimumPercent", slow.GetMinWeightPercent() == nil, true}, // 10
		{"loadBalancer.warmup.aggression", slow.GetAggression() == nil, true},           // 1
		{"loadBalancer.simple", cluster.GetLbPolicy(), clusterv3.Cluster_ROUND_ROBIN},   // LEAST_REQUEST in Istio
	} {
		if c.got != c.want {
			t.Errorf("without %s, Envoy uses %v, want %v", c.field, c.got, c.want)
		}
	}
}
