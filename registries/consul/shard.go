package consul

import (
	"fmt"
	"net/netip"
	"slices"

	"isthmus.dev/isthmus/federation"
)

// shard is the contribution of at least one usable instance.
func (t *translator) shard(found []*instance, report *report) *federation.Shard {
	plan := t.planPorts(found, report)
	s := &federation.Shard{Ports: plan.ports, VIPs: vips(found, report), MeshExternal: meshExternal(found)}
	if _, names := found[0].address.Host(); names {
		s.Resolution = federation.DNSLB
	}
	equal := allZero(found)
	if equal {
		report.ofService("WEIGHT_ALL_ZERO", "Weights", "all instances have the weight 0; they are used alike")
	}
	for _, in := range found {
		in.endpoint = t.endpoint(in, plan.served[in])
		in.endpoint.Network = t.networkOf(in, report)
		if in.weight == 0 && !equal && in.endpoint.Health == federation.Healthy {
			in.endpoint.Health = federation.Draining
		}
		s.Endpoints = append(s.Endpoints, in.endpoint)
	}
	return s
}

// endpoint has the weight that Consul names. A weight of 0 beside others means
// "only when nothing else is left", which is DRAINING.
func (t *translator) endpoint(in *instance, ports []federation.EndpointPort) federation.Endpoint {
	e := federation.Endpoint{
		Address: in.address, Ports: ports, Locality: in.locality(t.datacenter),
		Weight: uint32(max(in.weight, 1)), Health: in.health(), Labels: in.labels,
		UID: in.Node.ID + "/" + in.Service.ID, ServiceAccount: in.account,
	}
	if mode := in.labels[keyTLSMode]; mode == "istio" || mode == "disabled" {
		e.TLSMode = mode
	}
	if _, ok := in.address.IP(); ok {
		e.Workload = in.workload.String()
	}
	return e
}

func allZero(found []*instance) bool {
	return !slices.ContainsFunc(found, func(in *instance) bool { return in.weight != 0 })
}

// meshExternal follows the meta of any instance, or that all of them are on
// nodes without an agent.
func meshExternal(found []*instance) bool {
	nodes := true
	for _, in := range found {
		if in.Service.Meta[keyExternal] != "" {
			return true
		}
		nodes = nodes && in.external()
	}
	return nodes
}

// protocol is HTTP where none is named, and TCP where the name is unknown or
// instances disagree (seeds 5.3, B-C6).
func protocol(field string, names []string, report *report) federation.Protocol {
	if len(names) == 0 {
		return federation.HTTP
	}
	var out []federation.Protocol
	for _, name := range names {
		p := federation.ParseProtocol(name)
		if p == federation.Unsupported {
			report.ofService("PROTOCOL_UNKNOWN", field, "the protocol "+quote(name)+" is not known; TCP is used")
			p = federation.TCP
		}
		out = append(out, p)
	}
	slices.Sort(out)
	out = slices.Compact(out)
	if len(out) > 1 {
		report.ofService("PROTOCOL_CONFLICT", field, fmt.Sprintf("tags and meta of its instances name several protocols %v; TCP is used", out))
		return federation.TCP
	}
	return out[0]
}

// vips are the virtual addresses that Consul gives the service, and every other
// tagged address that all instances share. The lan and wan addresses are an
// instance's own and never those of the service.
func vips(found []*instance, report *report) []netip.Prefix {
	var out []netip.Prefix
	own := map[netip.Addr]bool{}
	count := map[string]map[netip.Addr]int{}
	for _, in := range found {
		if ip, ok := in.address.IP(); ok {
			own[ip] = true
		}
		for tag, tagged := range in.Service.TaggedAddresses {
			if isOwnAddress(tag) {
				continue
			}
			ip, err := federation.ParseIP(tagged.Address)
			if err != nil || ip.IsUnspecified() {
				report.ofInstance(in.id, "VIP_INVALID", "TaggedAddresses."+plain(tag), quote(tagged.Address)+" is not an IP address; it is not used")
				continue
			}
			if count[tag] == nil {
				count[tag] = map[netip.Addr]int{}
			}
			count[tag][ip]++
		}
	}
	for tag, ips := range count {
		for ip, n := range ips {
			if isVirtual(tag) || n == len(found) && !own[ip] {
				out = append(out, netip.PrefixFrom(ip, ip.BitLen()))
			}
		}
	}
	slices.SortFunc(out, netip.Prefix.Compare)
	return slices.Compact(out)
}

func isVirtual(tag string) bool { return tag == "virtual" || tag == "consul-virtual" }

func isOwnAddress(tag string) bool {
	switch tag {
	case "lan", "wan", "lan_ipv4", "lan_ipv6", "wan_ipv4", "wan_ipv6":
		return true
	}
	return false
}
