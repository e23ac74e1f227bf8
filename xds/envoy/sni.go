package envoy

import (
	"fmt"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/destinationrule"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// serverNameOf is the name that stands for the destination alone; taken tells
// whose it is where another comes first. The subsets are those of the service.
func (b *builder) serverNameOf(d destination, subsets []*networking.Subset) (name, taken string) {
	host := d.service.Key.Hostname
	name = resource.ServerName(host, d.port.Number, d.subset)
	if id, _ := resource.ParseServerName(name); id.Host != host {
		for _, s := range b.reader.ByHostname(id.Host) {
			if _, has := tcpPort(s, id.Port); has {
				return name, "the service " + s.Key.String()
			}
		}
	}
	for _, subset := range subsets {
		if subset.GetName() == d.subset {
			break
		}
		if strings.EqualFold(subset.GetName(), d.subset) {
			return name, fmt.Sprintf("the subset %q", subset.GetName())
		}
	}
	return name, ""
}

// sniConflict says that the destination has no name of its own.
// It is said of the DestinationRule that names the subset, and of the service; first
// is the rule of the destination that has the name, where there is one.
func (d destination) sniConflict(name, taken string, first federation.ObjectKey) resource.Reason {
	var related []federation.ObjectKey
	if first != (federation.ObjectKey{}) && first != d.rule() {
		related = append(related, first)
	}
	return resource.Reason{Code: resource.ReasonSNIConflict, Cause: d.rule(), Service: d.service.Key, Related: related, Message: fmt.Sprintf("%s: connections to it would ask for %s, as those to %s do, which comes first; give one of them another name; until then nothing is sent to the former", d.title(), name, taken)}
}

// Ignored says that a field of the destination's policy has no effect.
func (d destination) ignored(f destinationrule.Ignored) resource.Reason {
	return resource.Reason{Code: resource.ReasonRuleIgnored, Cause: d.rule(), Message: d.ruledBy() + ": trafficPolicy." + f.Field + " has no effect: " + f.Why}
}

// balance has Envoy choose among the endpoints, unless callers do.
func (b *builder) balance(c *clusterv3.Cluster, d destination) {
	if !d.passthrough() {
		b.reportIgnored(d, destinationrule.SetBalancing(c, d.policy, destinationrule.ByLocality(d.policy) && d.eds()))
	}
}

// reportIgnored says which fields of the destination's policy have no effect.
func (b *builder) reportIgnored(d destination, fields []destinationrule.Ignored) {
	for _, f := range fields {
		b.leaveOut(d.ignored(f))
	}
}
