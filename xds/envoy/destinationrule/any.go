package destinationrule

import (
	"slices"

	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
)

// Any reports whether is holds for a rule of the host, whatever its exportTo.
func Any(host federation.Hostname, r *federation.Reader, is func(*networking.DestinationRule) bool) bool {
	for o := range r.Objects().For(Kind, host) {
		if rule, ok := Spec(o); ok && is(rule) {
			return true
		}
	}
	return false
}

// GoesByPlace reports whether any policy of the rule has outlier detection, which makes
// nearby endpoints come first, or distributes requests over localities.
func GoesByPlace(rule *networking.DestinationRule) bool {
	return anyPolicy(rule, func(l *networking.LoadBalancerSettings, o *networking.OutlierDetection) bool {
		return o != nil || len(l.GetLocalityLbSetting().GetDistribute()) > 0
	})
}

// anyPolicy reports whether a policy of the rule, of its subsets or of a port is as is
// says.
func anyPolicy(rule *networking.DestinationRule, is func(*networking.LoadBalancerSettings, *networking.OutlierDetection) bool) bool {
	policies := []*networking.TrafficPolicy{rule.GetTrafficPolicy()}
	for _, subset := range rule.GetSubsets() {
		policies = append(policies, subset.GetTrafficPolicy())
	}
	return slices.ContainsFunc(policies, func(p *networking.TrafficPolicy) bool {
		return is(p.GetLoadBalancer(), p.GetOutlierDetection()) ||
			slices.ContainsFunc(p.GetPortLevelSettings(), func(l *networking.TrafficPolicy_PortTrafficPolicy) bool {
				return is(l.GetLoadBalancer(), l.GetOutlierDetection())
			})
	})
}

// LetsChoose reports whether any policy of the rule is PASSTHROUGH.
func LetsChoose(rule *networking.DestinationRule) bool {
	return anyPolicy(rule, func(l *networking.LoadBalancerSettings, _ *networking.OutlierDetection) bool {
		return l.GetSimple() == networking.LoadBalancerSettings_PASSTHROUGH
	})
}
