package envoy

import (
	"fmt"
	"strings"

	networking "istio.io/api/networking/v1"

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
func (d destination) sniConflict(name, taken string) resource.Reason {
	return resource.Reason{Code: resource.ReasonSNIConflict, Message: fmt.Sprintf("%s: connections to it would ask for %s, as those to %s do, which comes first; give one of them another name; until then nothing is sent to the former", d.title(), name, taken)}
}
