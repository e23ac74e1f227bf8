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

// anyPort is where datagrams reach a gateway that no Service selects: at each port.
const anyPort = "*"

// gatewayPorts are lists of PORT=TARGET, joined by commas, of the services of a gateway.
type gatewayPorts struct {
	tcp, udp string // where the target is another number
	quic     string // all for datagrams, if the gateway offers HTTP/3; or anyPort
}

// listenPorts says where the gateway listens for ports of the services that it
// serves itself: callers come by the Service, which sends them to its target port.
// Only services of the gateway's own cluster and namespace count; a tenant elsewhere
// must not move its listeners.
func (n Node) listenPorts(c effectiveConfig, r *federation.Reader, http3 bool) (p gatewayPorts) {
	if n.Type == Sidecar || n.GRPC {
		return p
	}
	place := n.Place()
	place.Network = cmp.Or(c.network, n.Network)
	instances := slices.DeleteFunc(r.At(place).Instances(), func(i federation.Instance) bool {
		return i.Service.Key.Namespace != n.Namespace || i.Shard.Cluster != n.Cluster || i.Number == 0
	})
	slices.SortStableFunc(instances, func(a, b federation.Instance) int {
		return cmp.Compare(a.Service.Key.Hostname, b.Service.Key.Hostname)
	})
	p.tcp = pairs(targets(instances, federation.TransportTCP, false))
	p.udp = pairs(targets(instances, federation.TransportUDP, false))
	switch {
	case http3 && len(instances) == 0:
		p.quic = anyPort
	case http3:
		p.quic = pairs(targets(instances, federation.TransportUDP, true))
	}
	return p
}

// targets are the ports of services with their target ports; same: also those that are their own. The first service
// with a port counts.
func targets(instances []federation.Instance, transport federation.Transport, same bool) map[uint16]uint16 {
	found := map[uint16]uint16{}
	for _, i := range instances {
		if i.Port.Protocol.Transport() != transport {
			continue
		}
		target := i.Number
		if s := i.Service.Shards.Of(i.Shard); s != nil && s.Labels[untranslatedLabel] != "" {
			if !same {
				continue
			}
			target = i.Port.Number
		}
		if _, known := found[i.Port.Number]; !known {
			found[i.Port.Number] = target
		}
	}
	maps.DeleteFunc(found, func(port, target uint16) bool { return port == target && !same })
	return found
}

func pairs(targets map[uint16]uint16) string {
	var parts []string
	for _, port := range slices.Sorted(maps.Keys(targets)) {
		parts = append(parts, fmt.Sprintf("%d=%d", port, targets[port]))
	}
	return strings.Join(parts, ",")
}

// ListensAt is the port at which the facet's proxies listen for a server's.
func (f Facet) ListensAt(port uint16) uint16 { return cmp.Or(targetIn(f.Extras().Ports, port), port) }

// DatagramsAt is the same for datagrams.
func (f Facet) DatagramsAt(port uint16) uint16 {
	return cmp.Or(targetIn(f.Extras().Datagrams, port), port)
}

// QUICAt is the port at which datagrams for a server's port reach the facet's proxies, if they offer
// HTTP/3; 0: none do.
func (f Facet) QUICAt(port uint16) uint16 {
	quic := f.Extras().QUIC
	if quic == anyPort {
		return f.ListensAt(port)
	}
	return targetIn(quic, port)
}

// targetIn is the target port in a list of PORT=TARGET; 0: it is not in it.
func targetIn(list string, port uint16) uint16 {
	for part := range strings.SplitSeq(list, ",") {
		from, to, _ := strings.Cut(part, "=")
		if from == strconv.Itoa(int(port)) {
			target, _ := strconv.ParseUint(to, 10, 16)
			return uint16(target)
		}
	}
	return 0
}
