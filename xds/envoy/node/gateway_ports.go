package node

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"isthmus.dev/isthmus/federation"
)

// untranslatedLabel of a Service keeps gateways at the port that the Gateway names,
// as with Istio.
const untranslatedLabel = "experimental.istio.io/disable-gateway-port-translation"

// listenPorts says where the gateway listens for ports of the services that it
// serves itself, PORT=TARGET, where that is another number: callers come by the
// Service, which sends them to its target port. Only services of the gateway's own
// cluster and namespace count; a tenant elsewhere must not move its listeners.
func (n Node) listenPorts(c bearing, r *federation.Reader) string {
	if n.Type == Sidecar || n.GRPC {
		return ""
	}
	place := n.Place()
	place.Network = cmp.Or(c.network, n.Network)
	instances := slices.DeleteFunc(r.At(place).Instances(), func(i federation.Instance) bool {
		s := i.Service.Shards.Of(i.Shard)
		return i.Service.Key.Namespace != n.Namespace || i.Shard.Cluster != n.Cluster || i.Number == 0 ||
			i.Port.Protocol.Transport() != federation.TransportTCP || s != nil && s.Labels[untranslatedLabel] != ""
	})
	slices.SortStableFunc(instances, func(a, b federation.Instance) int {
		return cmp.Compare(a.Service.Key.Hostname, b.Service.Key.Hostname)
	})
	targets := map[uint16]uint16{}
	for _, i := range instances {
		if _, known := targets[i.Port.Number]; !known {
			targets[i.Port.Number] = i.Number
		}
	}
	var parts []string
	for _, port := range slices.Sorted(maps.Keys(targets)) {
		if targets[port] != port {
			parts = append(parts, fmt.Sprintf("%d=%d", port, targets[port]))
		}
	}
	return strings.Join(parts, ",")
}

// ListensAt is the port at which the facet's proxies listen for a server's.
func (f Facet) ListensAt(port uint16) uint16 {
	for part := range strings.SplitSeq(f.Ports, ",") {
		from, to, _ := strings.Cut(part, "=")
		if from == strconv.Itoa(int(port)) {
			target, _ := strconv.ParseUint(to, 10, 16)
			return uint16(target)
		}
	}
	return port
}
