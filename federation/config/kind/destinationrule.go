package kind

import (
	"strings"

	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/analysis"
	"isthmus.dev/isthmus/federation/config/validation"
)

var _ = add(of[networking.DestinationRule]{
	kind: federation.DestinationRuleKind,
	names: func(d Decoded, s *networking.DestinationRule) []string {
		return append(d.hosts(s.GetHost()), exports(s.GetExportTo())...)
	},
	proxyLabels: func(s *networking.DestinationRule, add func(map[string]string)) {
		add(s.GetWorkloadSelector().GetMatchLabels())
		for _, balancer := range balancers(s) {
			add(priorityLabels(balancer.GetLocalityLbSetting().GetFailoverPriority()))
			add(priorityLabels(balancer.GetZoneAwareLbSetting().GetFailoverPriority()))
		}
	},
	check:      validation.DestinationRule,
	references: analysis.DestinationRule,
	columns:    []Column{{"HOST", "spec.host"}},
})

// balancers are those of all policies of the rule.
func balancers(s *networking.DestinationRule) []*networking.LoadBalancerSettings {
	policies := []*networking.TrafficPolicy{s.GetTrafficPolicy()}
	for _, subset := range s.GetSubsets() {
		policies = append(policies, subset.GetTrafficPolicy())
	}
	var all []*networking.LoadBalancerSettings
	for _, p := range policies {
		all = append(all, p.GetLoadBalancer())
		for _, port := range p.GetPortLevelSettings() {
			all = append(all, port.GetLoadBalancer())
		}
	}
	return all
}

// priorityLabels are the proxy labels of a failoverPriority. Their keys have a prefix, so
// that proxies are told apart by them only for endpoints.
func priorityLabels(priority []string) map[string]string {
	labels := map[string]string{}
	for _, label := range priority {
		if key, value, isPair := strings.Cut(label, "="); !isPair && !federation.IsTopology(key) {
			labels[federation.FailoverLabel+key] = value
		}
	}
	return labels
}

func exports(to []string) []string {
	var out []string
	for _, namespace := range to {
		if namespace != "*" && namespace != "." && namespace != "~" {
			out = append(out, ExportName(namespace))
		}
	}
	return out
}
