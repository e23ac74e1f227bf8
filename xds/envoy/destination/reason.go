package destination

import (
	"fmt"
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/destinationrule"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// RuledBy names the rules that made the destination's policy.
func (d Destination) RuledBy() string {
	names := make([]string, len(d.Rules))
	for i, o := range d.Rules {
		names[i] = o.Key.String()
	}
	return strings.Join(names, ", ")
}

// Ignored is the reason that a field of the destination's policy has no effect.
func (d Destination) ignored(f destinationrule.Ignored) resource.Reason {
	return resource.Reason{Code: resource.ReasonRuleIgnored, Cause: d.Rule(), Message: d.RuledBy() + ": trafficPolicy." +
		f.Field + " has no effect: " + f.Why}
}

// ReportIgnored says which fields of the destination's policy have no effect.
func ReportIgnored(v *facet.View, d Destination, fields []destinationrule.Ignored) {
	for _, f := range fields {
		v.LeaveOut(d.ignored(f))
	}
}

// Rule is the oldest of the rules that made the destination's policy.
func (d Destination) Rule() federation.ObjectKey {
	if len(d.Rules) == 0 {
		return federation.ObjectKey{}
	}
	return d.Rules[0].Key
}

// Title names the destination for people.
func (d Destination) Title() string {
	if d.Subset == "" {
		return "the service " + d.Service.Key.String()
	}
	return fmt.Sprintf("the subset %q of %s", d.Subset, d.Service.Key)
}
