package federation

import (
	"fmt"
	"slices"
	"strings"
)

// lent is what a shard takes from the services that it is bound to.
type lent struct {
	ports      []Port // theirs; unused where the shard declares its own
	endpoints  []Endpoint
	resolution Resolution
	accounts   []string
}

// portsOf are the ports of the shard: its own, else those that it takes.
func (l lent) portsOf(shard *Shard) []Port {
	if len(shard.Ports) > 0 {
		return shard.Ports
	}
	return l.ports
}

// bound is a service that another one is bound to.
type bound struct {
	BoundService
	service *Service
}

// anywhere is the service that is used if the namespace has none of that
// hostname: the one from registries without namespaces.
func (b BoundService) anywhere() ServiceKey { return ServiceKey{Hostname: b.Service.Hostname} }

// lend takes ports, endpoints and accounts from the targets. It is pure.
func lend(source ShardKey, shard *Shard, targets []bound) lent {
	l := lent{ports: unionOfPorts(targets)}
	ports := l.portsOf(shard)
	var offers []offer
	for _, t := range targets {
		if r := t.service.Resolution; r == DNSLB || r == DNSRoundRobinLB {
			l.resolution = DNSLB
		}
		if t.Weight == 0 {
			continue
		}
		l.accounts = append(l.accounts, t.service.ServiceAccounts...)
		if o := t.offer(source, ports); len(o.endpoints) > 0 {
			offers = append(offers, o)
		}
	}
	weigh(offers)
	l.endpoints = joinOffers(offers)
	return l
}

// unionOfPorts has each port of the targets by transport and number; the first
// target wins. A name that was used before, or is empty among several, becomes
// one of transport and number.
func unionOfPorts(targets []bound) []Port {
	var ports []Port
	for _, t := range targets {
		for _, p := range t.service.Ports {
			if !slices.ContainsFunc(ports, func(o Port) bool { return sameSocket(o, p) }) {
				ports = append(ports, Port{Name: p.Name, Number: p.Number, Protocol: p.Protocol, Undeclared: p.Undeclared})
			}
		}
	}
	if len(ports) < 2 {
		return ports
	}
	used := map[string]bool{}
	for i := range ports {
		name := ports[i].Name
		for n := 0; name == "" || used[name]; n++ {
			name = strings.ToLower(fmt.Sprintf("%s-%d", ports[i].Protocol.Transport(), ports[i].Number)) + strings.Repeat("-x", n)
		}
		ports[i].Name, used[name] = name, true
	}
	slices.SortFunc(ports, comparePorts)
	return ports
}

func sameSocket(a Port, b ServicePort) bool {
	return a.Number == b.Number && a.Protocol.Transport() == b.Protocol.Transport()
}

// portFor finds the target's port that serves a port of the binding: the one of
// the same number, else of the same name, else the only one of both.
func (b bound) portFor(p Port, only bool) (ServicePort, bool) {
	ports := b.service.Ports
	if i := slices.IndexFunc(ports, func(o ServicePort) bool { return sameSocket(p, o) }); i >= 0 {
		return ports[i], true
	}
	same := func(o ServicePort) bool { return o.Protocol.Transport() == p.Protocol.Transport() }
	if i := slices.IndexFunc(ports, func(o ServicePort) bool { return o.Name == p.Name && same(o) }); i >= 0 {
		return ports[i], true
	}
	if only && len(ports) == 1 && same(ports[0]) {
		return ports[0], true
	}
	return ServicePort{}, false
}

// offer are the endpoints of the target under the ports of the binding.
func (b bound) offer(source ShardKey, ports []Port) offer {
	o := offer{weight: uint64(b.Weight)}
	for _, group := range b.service.lendable() {
		names := map[string]string{} // of the binding's port: that of the group's
		for _, p := range ports {
			if port, ok := b.portFor(p, len(ports) == 1); ok {
				if name, declared := port.DeclaredBy(group.Shard); declared {
					names[p.Name] = name
				}
			}
		}
		for i := range group.Endpoints {
			e := group.Endpoints[i]
			cluster := group.ClusterOf(&e)
			if len(b.Clusters) > 0 && !slices.Contains(b.Clusters, cluster) {
				continue
			}
			of := &group.Endpoints[i]
			e.Ports = lentPorts(ports, names, of)
			if len(e.Ports) == 0 {
				if _, unix := e.Address.Unix(); !unix {
					continue
				}
			}
			e.Cluster = ""
			if cluster != source.Cluster {
				e.Cluster = cluster
			}
			o.endpoints = append(o.endpoints, e)
		}
	}
	return o
}

func lentPorts(ports []Port, names map[string]string, of *Endpoint) []EndpointPort {
	var out []EndpointPort
	for _, p := range ports {
		name, ok := names[p.Name]
		if !ok {
			continue
		}
		if number, served := of.Port(name); served {
			out = append(out, EndpointPort{Name: p.Name, Number: number})
		}
	}
	return out
}

// joinOffers puts all endpoints into one list. One that several targets offer
// takes the requests of all of them.
func joinOffers(offers []offer) []Endpoint {
	var all []Endpoint
	for _, o := range offers {
		all = append(all, o.endpoints...)
	}
	slices.SortStableFunc(all, compareEndpoints)
	out := all[:0]
	for _, e := range all {
		if n := len(out); n > 0 && compareSockets(out[n-1], e) == 0 {
			out[n-1].Weight = out[n-1].LoadBalancingWeight() + e.LoadBalancingWeight()
			continue
		}
		out = append(out, e)
	}
	return out
}
