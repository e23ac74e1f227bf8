package destinationrule

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// Merged is the merged DestinationRules of a service.
type Merged struct {
	Rules   []*federation.Object
	policy  *networking.TrafficPolicy
	Subsets []*networking.Subset
}

// Merge merges the rules about the service: the first that has a policy or a
// subset holds. The reasons are for what does not hold.
func Merge(s *federation.Service, c Callers, reader *federation.Reader) (r Merged, reasons []resource.Reason) {
	r.Rules = For(s, c, reader)
	ignore := func(o *federation.Object, field, why string) {
		reasons = append(reasons, resource.Reason{
			Code: resource.ReasonRuleIgnored, Cause: o.Key,
			Message: fmt.Sprintf("%s: %s has no effect: %s", o.Key, field, why),
		})
	}
	for _, o := range r.Rules {
		rule, _ := Spec(o)
		switch {
		case rule.GetTrafficPolicy() == nil:
		case r.policy == nil:
			r.policy = rule.GetTrafficPolicy()
		default:
			ignore(o, "trafficPolicy", "an older rule of the same host has one")
		}
		for i, subset := range rule.GetSubsets() {
			field := fmt.Sprintf("subsets[%d]", i)
			if _, twice := r.Subset(subset.GetName()); twice {
				ignore(o, field, fmt.Sprintf("the subset %q is there already", subset.GetName()))
				continue
			}
			if subset.GetName() == "" || resource.ValidateName(resource.SubsetClusterName(s.Key.Hostname, math.MaxUint16, subset.GetName())) != nil {
				ignore(o, field, "its name is empty, too long, or has control characters")
				continue
			}
			r.Subsets = append(r.Subsets, subset)
		}
	}
	return r, reasons
}

// Subset is the subset of that name.
func (r Merged) Subset(name string) (*networking.Subset, bool) {
	i := slices.IndexFunc(r.Subsets, func(s *networking.Subset) bool { return s.GetName() == name })
	if i < 0 {
		return nil, false
	}
	return r.Subsets[i], true
}

// PolicyOf is the policy for a port of the service or of a subset: the subset's
// fields replace the rule's, and settings of the port replace all that a port
// can have. It is never nil.
func (r Merged) PolicyOf(port uint16, subset *networking.Subset) *networking.TrafficPolicy {
	return override(override(&networking.TrafficPolicy{}, r.policy, port), subset.GetTrafficPolicy(), port)
}

func override(base, with *networking.TrafficPolicy, port uint16) *networking.TrafficPolicy {
	merged := &networking.TrafficPolicy{
		LoadBalancer:     cmp.Or(with.GetLoadBalancer(), base.GetLoadBalancer()),
		ConnectionPool:   cmp.Or(with.GetConnectionPool(), base.GetConnectionPool()),
		OutlierDetection: cmp.Or(with.GetOutlierDetection(), base.GetOutlierDetection()),
		Tls:              cmp.Or(with.GetTls(), base.GetTls()),
		RetryBudget:      cmp.Or(with.GetRetryBudget(), base.GetRetryBudget()),
		ProxyProtocol:    cmp.Or(with.GetProxyProtocol(), base.GetProxyProtocol()),
		Tunnel:           cmp.Or(with.GetTunnel(), base.GetTunnel()),
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
