package kubernetes

import (
	"cmp"
	"net/netip"
	"slices"

	"isthmus.dev/isthmus/federation"
)

// surroundings is what a service's endpoints are joined with.
type surroundings struct {
	pods    map[key]*pod
	nodes   map[string]*node
	vips    map[netip.Addr]key   // the cluster's own service addresses
	network federation.NetworkID // of endpoints that name none
}

// join makes the service's contribution out of its own words and its slices.
// It is pure: the order of the slices does not matter.
func join(s *service, of []*slice, in surroundings) (*federation.Shard, []federation.Problem) {
	shard := s.shard
	if shard.Resolution == federation.DNSLB {
		shard.Endpoints = slices.Clone(shard.Endpoints)
		for i := range shard.Endpoints {
			shard.Endpoints[i].Network = in.network
		}
		return &shard, nil
	}
	slices.SortFunc(of, func(a, b *slice) int { return cmp.Compare(a.k.Name, b.k.Name) })
	size := 0
	for _, sl := range of {
		size += len(sl.endpoints)
	}
	if size == 0 {
		return &shard, nil
	}
	shard.Endpoints = make([]federation.Endpoint, 0, size)
	var problems []federation.Problem
	for _, sl := range of {
		n := notesOn("EndpointSlice", sl.k)
		n.part = "endpoints"
		for i := range sl.endpoints {
			if e, ok := joinEndpoint(s, sl, &sl.endpoints[i], in, &n); ok {
				shard.Endpoints = append(shard.Endpoints, e)
			}
		}
		problems = append(problems, n.all()...)
	}
	return &shard, problems
}

func joinEndpoint(s *service, sl *slice, e *sliceEndpoint, in surroundings, n *notes) (federation.Endpoint, bool) {
	if vip, ok := in.vips[e.ip]; ok {
		n.add(codeAddress, index("endpoints", e.place)+".addresses[0]", "%s is the address of service %s itself; this endpoint is left out", e.ip, vip)
		return federation.Endpoint{}, false
	}
	out := federation.Endpoint{
		Address: federation.IPAddress(e.ip),
		Ports:   sl.ports,
		Health:  e.health(s.notReady),
		Network: cmp.Or(sl.network, in.network),
	}
	if s.shard.Resolution == federation.Passthrough {
		out.Hostname = e.hostname
	}
	where := e.node
	if p := e.backing(sl, in.pods, n); p != nil {
		out.Labels, out.ServiceAccount, out.TLSMode, out.UID = p.labels, p.account, p.tlsMode, p.uid
		out.Workload = p.k.String()
		out.Network = cmp.Or(p.network, out.Network)
		where = cmp.Or(p.node, where)
	}
	out.Locality = in.locality(where)
	out.Locality.Zone = cmp.Or(out.Locality.Zone, e.zone)
	return out, true
}

// backing finds the pod behind the endpoint: the one that it refers to, unless
// the pod was replaced or has other addresses.
func (e *sliceEndpoint) backing(sl *slice, pods map[key]*pod, n *notes) *pod {
	if e.pod == "" {
		return nil
	}
	p := pods[key{Namespace: sl.k.Namespace, Name: e.pod}]
	if p == nil || e.podUID != "" && p.uid != "" && e.podUID != p.uid {
		return nil
	}
	if len(p.ips) > 0 && !slices.Contains(p.ips, e.ip) {
		n.add(codeTarget, index("endpoints", e.place)+".targetRef", "pod %s does not have the address %s; its labels and service account are not used", p.k, e.ip)
		return nil
	}
	return p
}

func (in surroundings) locality(name string) federation.Locality {
	if n := in.nodes[name]; n != nil {
		return n.locality
	}
	return federation.Locality{}
}
