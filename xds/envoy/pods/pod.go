// Package pods knows the pods of headless services: the addresses at which callers dial them,
// and the hosts that they have in other clusters.
package pods

import (
	"net/netip"
	"slices"
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/destination"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/service"
)

// Callers of a headless service choose a pod by its address, which means nothing
// in another network. There each pod that takes mutual TLS has a host of its own,
// POD.CLUSTER.HOST, with a cluster, a VIP and a name.

// Pod is an endpoint of a headless service as a service of its own.
type Pod struct {
	Name    string // within the headless service
	Of      *federation.Service
	Cluster federation.ClusterID
	Service *federation.Service
}

// Of are those of a headless service that has its endpoints, each host once, in
// the order of precedence; without those whose host is too long for TLS.
func Of(s *federation.Service) []Pod {
	var all []Pod
	taken := map[federation.Hostname]bool{}
	for _, group := range s.Endpoints {
		for i := range group.Endpoints {
			e := &group.Endpoints[i]
			name := podName(e)
			host := federation.Hostname(strings.ToLower(name + "." + string(group.ClusterOf(e)) + "." + string(s.Key.Hostname)))
			if _, isIP := e.Address.IP(); !isIP || name == "" || !e.TakesMutualTLS() ||
				!resource.IsDomain(string(host)) || resource.MayBeShortened(host) || taken[host] {
				continue
			}
			taken[host] = true
			all = append(all, newPod(Pod{Name: name, Of: s, Cluster: group.ClusterOf(e)}, host, federation.ShardEndpoints{
				Shard: group.Shard, Endpoints: []federation.Endpoint{*e},
			}))
		}
	}
	return all
}

// podName is the pod's hostname, else the name of its workload.
func podName(e *federation.Endpoint) string {
	if e.Hostname != "" {
		return e.Hostname
	}
	_, name, _ := strings.Cut(e.Workload, "/")
	return name
}

func newPod(p Pod, host federation.Hostname, group federation.ShardEndpoints) Pod {
	own, e := *p.Of, group.Endpoints[0]
	own.Key.Hostname, own.Resolution, own.Endpoints = host, federation.ClientSideLB, []federation.ShardEndpoints{group}
	peer := federation.PeerAccounts{Cluster: p.Cluster, Network: e.Network}
	if e.ServiceAccount != "" {
		peer.Accounts = []string{e.ServiceAccount}
	}
	own.Peers = []federation.PeerAccounts{peer}
	own.Ports = nil
	for _, port := range p.Of.Ports {
		if _, declared := port.DeclaredBy(group.Shard); declared && port.Protocol.Transport() == federation.TransportTCP {
			port.Protocol = federation.TCP // passed on as bytes
			own.Ports = append(own.Ports, port)
		}
	}
	p.Service = &own
	return p
}

// VIP is the address of the pod for callers of other clusters.
func (p Pod) VIP() netip.Addr { return p.Service.Key.AutomaticVIPs()[0] }

// All are those of every headless service that the facet's proxies see;
// remote: without those of the facet's own cluster.
func All(v *facet.View, remote bool) []Pod {
	var all []Pod
	for s := range v.Reader.Specs() {
		if !service.IsHeadless(s) || !v.Facet.Covers(s) {
			continue
		}
		s, _ = v.Reader.Endpoints(s.Key)
		all = append(all, Of(s)...)
	}
	if remote {
		all = slices.DeleteFunc(all, func(p Pod) bool { return p.Cluster == v.Facet.Cluster })
	}
	return all
}

// Named finds the pod of that host.
func Named(v *facet.View, host federation.Hostname) (Pod, bool) {
	for rest := string(host); ; {
		_, after, more := strings.Cut(rest, ".")
		if !more {
			return Pod{}, false
		}
		rest = after
		for _, s := range v.Reader.ByHostname(federation.Hostname(rest)) {
			if !service.IsHeadless(s) || !v.Facet.Covers(s) {
				continue
			}
			s, _ = v.Reader.Endpoints(s.Key)
			all := Of(s)
			if i := slices.IndexFunc(all, func(p Pod) bool { return p.Service.Key.Hostname == host }); i >= 0 {
				return all[i], true
			}
		}
	}
}

// Destination is the destination of a port of the pod.
func Destination(v *facet.View, p Pod, number uint16, name string) (destination.Destination, bool) {
	port, ok := service.TCPPort(p.Service, number)
	if !ok {
		return destination.Destination{}, false
	}
	r := v.DestinationRule(p.Of)
	d := destination.Destination{
		ServedPort: service.ServedPort{Service: p.Service, Port: port}, Name: name, Policy: r.PolicyOf(number, nil),
		Rules: r.Rules, Identity: v.Facet.Identity, Agent: v.Facet.Agent,
	}
	d.SNI = resource.ServerName(p.Service.Key.Hostname, number, "")
	return d, true
}

// ServerNames are those of the pod's ports.
func (p Pod) ServerNames() []string {
	var names []string
	for _, port := range p.Service.Ports {
		names = append(names, resource.ServerName(p.Service.Key.Hostname, port.Number, ""))
	}
	return names
}
