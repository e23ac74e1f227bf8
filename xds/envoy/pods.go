package envoy

import (
	"net/netip"
	"slices"
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// Callers of a headless service choose a pod by its address, which means nothing
// in another network. There each pod that takes mutual TLS has a host of its own,
// POD.CLUSTER.HOST, with a cluster, a VIP and a name.

// pod is an endpoint of a headless service as a service of its own.
type pod struct {
	name    string // within the headless service
	of      *federation.Service
	cluster federation.ClusterID
	service *federation.Service
}

// pods are those of a headless service that has its endpoints, each host once, in
// the order of precedence; without those whose host is too long for TLS.
func pods(s *federation.Service) []pod {
	var all []pod
	taken := map[federation.Hostname]bool{}
	for _, group := range s.Endpoints {
		for i := range group.Endpoints {
			e := &group.Endpoints[i]
			name := podName(e)
			host := federation.Hostname(strings.ToLower(name + "." + string(group.ClusterOf(e)) + "." + string(s.Key.Hostname)))
			if _, isIP := e.Address.IP(); !isIP || name == "" || !e.TakesMutualTLS() || !resource.IsDomain(string(host)) || resource.MayBeShortened(host) || taken[host] {
				continue
			}
			taken[host] = true
			all = append(all, newPod(pod{name: name, of: s, cluster: group.ClusterOf(e)}, host, federation.ShardEndpoints{Shard: group.Shard, Endpoints: []federation.Endpoint{*e}}))
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

func newPod(p pod, host federation.Hostname, group federation.ShardEndpoints) pod {
	own, e := *p.of, group.Endpoints[0]
	own.Key.Hostname, own.Resolution, own.Endpoints = host, federation.ClientSideLB, []federation.ShardEndpoints{group}
	peer := federation.PeerAccounts{Cluster: p.cluster, Network: e.Network}
	if e.ServiceAccount != "" {
		peer.Accounts = []string{e.ServiceAccount}
	}
	own.Peers = []federation.PeerAccounts{peer}
	own.Ports = nil
	for _, port := range p.of.Ports {
		if _, declared := port.DeclaredBy(group.Shard); declared && port.Protocol.Transport() == federation.TransportTCP {
			port.Protocol = federation.TCP // passed on as bytes
			own.Ports = append(own.Ports, port)
		}
	}
	p.service = &own
	return p
}

// vip is the address of the pod for callers of other clusters.
func (p pod) vip() netip.Addr { return p.service.Key.AutomaticVIPs()[0] }

// allPods are those of every headless service that the facet's proxies see;
// remote: without those of the facet's own cluster.
func (b *builder) allPods(remote bool) []pod {
	var all []pod
	for s := range b.reader.Specs() {
		if !headless(s) || !b.facet.Covers(s) {
			continue
		}
		s, _ = b.reader.Endpoints(s.Key)
		all = append(all, pods(s)...)
	}
	if remote {
		all = slices.DeleteFunc(all, func(p pod) bool { return p.cluster == b.facet.Cluster })
	}
	return all
}

// podAt finds the pod of that host.
func (b *builder) podAt(host federation.Hostname) (pod, bool) {
	for rest := string(host); ; {
		_, after, more := strings.Cut(rest, ".")
		if !more {
			return pod{}, false
		}
		rest = after
		for _, s := range b.reader.ByHostname(federation.Hostname(rest)) {
			if !headless(s) || !b.facet.Covers(s) {
				continue
			}
			s, _ = b.reader.Endpoints(s.Key)
			all := pods(s)
			if i := slices.IndexFunc(all, func(p pod) bool { return p.service.Key.Hostname == host }); i >= 0 {
				return all[i], true
			}
		}
	}
}

// podDestination is what a port of the pod stands for.
func (b *builder) podDestination(p pod, number uint16, name string) (destination, bool) {
	port, ok := tcpPort(p.service, number)
	if !ok {
		return destination{}, false
	}
	r := b.ruling(p.of)
	d := destination{servedPort: servedPort{p.service, port}, name: name, policy: r.PolicyOf(number, nil), rules: r.Rules, identity: b.facet.Identity, agent: b.facet.Agent}
	d.sni = resource.ServerName(p.service.Key.Hostname, number, "")
	return d, true
}
