package destination

import (
	"fmt"
	"strings"

	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/service"
)

// serverNameOf is the name of this destination and of no other; taken tells
// whose it is where another comes first. The subsets are those of the service.
func serverNameOf(v *facet.View, d Destination, subsets []*networking.Subset) (name, taken string) {
	host := d.Service.Key.Hostname
	name = resource.ServerName(host, d.Port.Number, d.Subset)
	if id, _ := resource.ParseServerName(name); id.Host != host {
		for _, s := range v.Reader.ByHostname(id.Host) {
			if _, has := service.TCPPort(s, id.Port); has {
				return name, "the service " + s.Key.String()
			}
		}
	}
	for _, subset := range subsets {
		if subset.GetName() == d.Subset {
			break
		}
		if strings.EqualFold(subset.GetName(), d.Subset) {
			return name, fmt.Sprintf("the subset %q", subset.GetName())
		}
	}
	return name, ""
}

// SNIConflict is the reason that the destination has no name of its own.
// It is reported on the DestinationRule that names the subset, and on the service; first
// is the rule of the destination that has the name, if there is one.
func (d Destination) SNIConflict(name, taken string, first federation.ObjectKey) resource.Reason {
	var related []federation.ObjectKey
	if first != (federation.ObjectKey{}) && first != d.Rule() {
		related = append(related, first)
	}
	return resource.Reason{
		Code: resource.ReasonSNIConflict, Cause: d.Rule(), Service: d.Service.Key, Related: related,
		Message: fmt.Sprintf("%s: connections to it would ask for %s, as those to %s do, which comes first; give one of them another name; until then nothing is sent to the former", d.Title(), name, taken),
	}
}
