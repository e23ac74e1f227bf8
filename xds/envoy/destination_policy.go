package envoy

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// ruling is what rules say of a service together.
type ruling struct {
	rules   []*federation.Object
	policy  *networking.TrafficPolicy
	subsets []*networking.Subset
}

// ruling unites the rules about the service: the first that says a policy or a
// subset holds.
func (b *builder) ruling(s *federation.Service) ruling {
	r := ruling{rules: b.rulesFor(s, b.callers())}
	for _, o := range r.rules {
		rule, _ := ruleOf(o)
		switch {
		case rule.GetTrafficPolicy() == nil:
		case r.policy == nil:
			r.policy = rule.GetTrafficPolicy()
		default:
			b.ignore(o, "trafficPolicy", "an older rule of the same host has one")
		}
		for i, subset := range rule.GetSubsets() {
			field := fmt.Sprintf("subsets[%d]", i)
			if _, twice := r.subset(subset.GetName()); twice {
				b.ignore(o, field, fmt.Sprintf("the subset %q is there already", subset.GetName()))
				continue
			}
			if subset.GetName() == "" || resource.ValidateName(resource.SubsetClusterName(s.Key.Hostname, math.MaxUint16, subset.GetName())) != nil {
				b.ignore(o, field, "its name is empty, too long, or has control characters")
				continue
			}
			r.subsets = append(r.subsets, subset)
		}
	}
	return r
}

func (b *builder) ignore(o *federation.Object, field, why string) {
	b.leaveOut(resource.Reason{Code: resource.ReasonRuleIgnored, Cause: o.Key, Message: fmt.Sprintf("%s: %s has no effect: %s", o.Key, field, why)})
}

func (r ruling) subset(name string) (*networking.Subset, bool) {
	i := slices.IndexFunc(r.subsets, func(s *networking.Subset) bool { return s.GetName() == name })
	if i < 0 {
		return nil, false
	}
	return r.subsets[i], true
}

// policyOf is what holds for a port of the service or of a subset: the subset's
// fields replace the rule's, and settings of the port replace all that a port
// can have. It is never nil.
func (r ruling) policyOf(port uint16, subset *networking.Subset) *networking.TrafficPolicy {
	return override(override(&networking.TrafficPolicy{}, r.policy, port), subset.GetTrafficPolicy(), port)
}

func override(base, with *networking.TrafficPolicy, port uint16) *networking.TrafficPolicy {
	merged := &networking.TrafficPolicy{
		LoadBalancer:     cmp.Or(with.GetLoadBalancer(), base.GetLoadBalancer()),
		ConnectionPool:   cmp.Or(with.GetConnectionPool(), base.GetConnectionPool()),
		OutlierDetection: cmp.Or(with.GetOutlierDetection(), base.GetOutlierDetection()),
		Tls:              cmp.Or(with.GetTls(), base.GetTls()),
		RetryBudget:      cmp.Or(with.GetRetryBudget(), base.GetRetryBudget()),
	}
	for _, p := range with.GetPortLevelSettings() {
		if p.GetPort().GetNumber() == uint32(port) {
			merged.LoadBalancer, merged.ConnectionPool = p.GetLoadBalancer(), p.GetConnectionPool()
			merged.OutlierDetection, merged.Tls = p.GetOutlierDetection(), p.GetTls()
			break
		}
	}
	return merged
}

// trafficPolicyFor is what the facet's proxies are told about requests to a port
// of the service or one of its subsets; the empty subset is the whole service.
// It is never nil.
func (b *builder) trafficPolicyFor(s *federation.Service, port uint16, subset string) *networking.TrafficPolicy {
	r := b.ruling(s)
	part, _ := r.subset(subset)
	return r.policyOf(port, part)
}

// hasSubset tells that the facet's proxies know of a subset of the service.
func (b *builder) hasSubset(s *federation.Service, subset string) bool {
	_, ok := b.ruling(s).subset(subset)
	return ok
}
