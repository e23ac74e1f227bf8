package destinationrule

import (
	"math"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1"
)

// defaultMaxEjection is how long Envoy ejects an endpoint at most, unless told.
const defaultMaxEjection = 300 * time.Second

// PanicThreshold is the share of healthy endpoints below which all are used, in
// per cent. Draining endpoints are unhealthy to Envoy, and they are the last
// resort: it is never 0, and 1 is the least other than 0 that Envoy can be told.
func PanicThreshold(policy *networking.TrafficPolicy) float64 {
	return float64(min(max(policy.GetOutlierDetection().GetMinHealthPercent(), 1), 100))
}

// SetOutlierDetection ejects endpoints that fail again and again, never those
// that merely succeed less often than others.
func SetOutlierDetection(c *clusterv3.Cluster, o *networking.OutlierDetection) {
	if o == nil {
		return
	}
	never, always := wrapperspb.UInt32(0), wrapperspb.UInt32(100)
	d := &clusterv3.OutlierDetection{
		EnforcingSuccessRate: never, Interval: positive(o.GetInterval()),
		BaseEjectionTime: positive(o.GetBaseEjectionTime()),
	}
	// What is ejected for longer than the default limit has that limit.
	if base := d.GetBaseEjectionTime(); base.AsDuration() > defaultMaxEjection {
		d.MaxEjectionTime = base
	}
	d.Consecutive_5Xx, d.EnforcingConsecutive_5Xx = threshold(o.GetConsecutive_5XxErrors())
	d.ConsecutiveGatewayFailure, d.EnforcingConsecutiveGatewayFailure = threshold(o.GetConsecutiveGatewayErrors())
	if old := o.GetConsecutiveErrors(); old > 0 && o.GetConsecutiveGatewayErrors() == nil {
		d.ConsecutiveGatewayFailure, d.EnforcingConsecutiveGatewayFailure = wrapperspb.UInt32(uint32(old)), always
	}
	if percent := o.GetMaxEjectionPercent(); percent > 0 {
		d.MaxEjectionPercent = wrapperspb.UInt32(uint32(min(percent, 100)))
	}
	if o.GetSplitExternalLocalOriginErrors() {
		d.SplitExternalLocalOriginErrors, d.EnforcingLocalOriginSuccessRate = true, never
		if local := o.GetConsecutiveLocalOriginFailures(); local.GetValue() > 0 { // 0 has Envoy's default, 5
			d.ConsecutiveLocalOriginFailure, d.EnforcingConsecutiveLocalOriginFailure = threshold(local)
		}
	}
	c.OutlierDetection = d
}

// threshold is how many failures eject, and whether they do: 0 of them do not.
func threshold(n *wrapperspb.UInt32Value) (failures, enforcing *wrapperspb.UInt32Value) {
	switch {
	case n == nil:
		return nil, nil
	case n.GetValue() == 0:
		return nil, wrapperspb.UInt32(0)
	}
	return wrapperspb.UInt32(min(n.GetValue(), math.MaxInt32)), wrapperspb.UInt32(100)
}

// longest is far below what Envoy can count, and above what anybody waits for.
const longest = 100 * 365 * 24 * time.Hour

// positive is a duration that Envoy can count; nil: none.
func positive(d *durationpb.Duration) *durationpb.Duration {
	if d.AsDuration() <= 0 {
		return nil
	}
	return durationpb.New(min(d.AsDuration(), longest))
}
