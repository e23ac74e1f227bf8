package destinationrule

import (
	"iter"

	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/tlsparams"
)

// Any reports whether is holds for a rule of the host, whatever its exportTo.
func Any(host federation.Hostname, r *federation.Reader, is func(*networking.DestinationRule) bool) bool {
	for o := range r.Objects().For(federation.DestinationRuleKind, host) {
		if rule, ok := Spec(o); ok && is(rule) {
			return true
		}
	}
	return false
}

// GoesByPlace reports whether any policy of the rule has outlier detection, which makes
// nearby endpoints come first, puts regions in an order, or distributes requests over localities.
func GoesByPlace(rule *networking.DestinationRule) bool {
	return anyPolicy(rule, func(p settings) bool {
		balancer := p.GetLoadBalancer()
		return p.GetOutlierDetection() != nil || balancer.GetZoneAwareLbSetting() != nil ||
			len(balancer.GetLocalityLbSetting().GetDistribute()) > 0
	})
}

// settings are those that a policy and one of a port have.
type settings interface {
	GetLoadBalancer() *networking.LoadBalancerSettings
	GetOutlierDetection() *networking.OutlierDetection
	GetTls() *networking.ClientTLSSettings
}

// anyPolicy reports whether a policy of the rule, of its subsets or of a port is as is
// says.
func anyPolicy(rule *networking.DestinationRule, is func(settings) bool) bool {
	for p := range policiesOf(rule) {
		if is(p) {
			return true
		}
	}
	return false
}

func policiesOf(rule *networking.DestinationRule) iter.Seq[settings] {
	return func(yield func(settings) bool) {
		policies := []*networking.TrafficPolicy{rule.GetTrafficPolicy()}
		for _, subset := range rule.GetSubsets() {
			policies = append(policies, subset.GetTrafficPolicy())
		}
		for _, p := range policies {
			if !yield(p) {
				return
			}
			for _, port := range p.GetPortLevelSettings() {
				if !yield(port) {
					return
				}
			}
		}
	}
}

// LetsChoose reports whether any policy of the rule is PASSTHROUGH.
func LetsChoose(rule *networking.DestinationRule) bool {
	return anyPolicy(rule, func(p settings) bool {
		return p.GetLoadBalancer().GetSimple() == networking.LoadBalancerSettings_PASSTHROUGH
	})
}

// Credentials are the Secrets that policies of the rule name.
func Credentials(rule *networking.DestinationRule) []string {
	var names []string
	for p := range policiesOf(rule) {
		if name, ok := tlsparams.Credential(p.GetTls().GetCredentialName()); ok && HasCredential(p.GetTls()) {
			names = append(names, name)
		}
	}
	return names
}

// NeedsCredential reports whether any policy of the rule has its certificates in a Secret.
func NeedsCredential(rule *networking.DestinationRule) bool {
	return anyPolicy(rule, func(p settings) bool { return HasCredential(p.GetTls()) })
}
