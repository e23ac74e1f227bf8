package kubernetes

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"isthmus.dev/isthmus/federation"
)

// endpointContext is what a service's endpoints are joined with.
type endpointContext struct {
	pods   map[key]*pod
	podsAt references[netip.Addr, key]
	absent map[endpointID]absence // the service's endpoints whose pods are missing
	now    time.Time
	nodes  map[string]*node
	// defaults are what namespaces say of their services.
	defaults map[key]*defaults
	vips     map[netip.Addr]key   // the cluster's own service addresses
	network  federation.NetworkID // of endpoints that name none
}

// joined is a service's contribution, and what to keep for the next time.
type joined struct {
	shard    *federation.Shard
	problems []federation.Problem
	absent   map[endpointID]absence
	due      time.Time // when a missing pod becomes a problem; zero: none is missing
}

// join makes the service's contribution out of its own words and its slices.
// It is pure: the order of the slices does not matter.
func join(s *service, of []*slice, in endpointContext) joined {
	shard := s.shard
	out := joined{shard: &shard}
	if s.byNamespace {
		shard.TrafficDistribution = in.defaults[key{Name: s.k.Namespace}].distributes()
	}
	if shard.Resolution == federation.DNSLB {
		shard.Endpoints = slices.Clone(shard.Endpoints)
		for i := range shard.Endpoints {
			shard.Endpoints[i].Network = in.network
		}
		return out
	}
	slices.SortFunc(of, func(a, b *slice) int { return cmp.Compare(a.k.Name, b.k.Name) })
	size := 0
	for _, sl := range of {
		size += len(sl.endpoints)
	}
	if size == 0 {
		return out
	}
	shard.Endpoints = make([]federation.Endpoint, 0, size)
	for _, sl := range of {
		n := problemsOf("EndpointSlice", sl.k)
		n.Rest = "endpoints(more)"
		for i := range sl.endpoints {
			if e, ok := out.endpoint(s, sl, &sl.endpoints[i], in, &n); ok {
				shard.Endpoints = append(shard.Endpoints, e)
			}
		}
		out.problems = append(out.problems, n.All()...)
	}
	return out
}

func (j *joined) endpoint(s *service, sl *slice, e *sliceEndpoint, in endpointContext, n *objectProblems) (federation.Endpoint, bool) {
	if vip, ok := in.vips[e.ip]; ok {
		n.Add(codeAddress, index("endpoints", e.place)+".addresses[0]",
			"%s is the address of service %s itself; this endpoint is excluded", e.ip, vip)
		return federation.Endpoint{}, false
	}
	p, known := e.backing(sl, in, n)
	if known == backedByMissing {
		j.withhold(e, in, n)
		return federation.Endpoint{}, false
	}
	if in.pods[podKey(p)] != p {
		j.keep(e, absence{last: p})
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
	if p != nil {
		where = e.take(p, &out)
	}
	if out.Locality == (federation.Locality{}) {
		out.Locality = in.locality(where)
		out.Locality.Zone = cmp.Or(out.Locality.Zone, e.zone)
	}
	return out, true
}

// take fills in what the pod says, and returns the node.
func (e *sliceEndpoint) take(p *pod, out *federation.Endpoint) (node string) {
	// The server must prove to be the pod that is referred to. That is all
	// that an address which is not the pod's gets of it: it demands more, never less.
	out.TLSMode, out.ServiceAccount = p.tlsMode, p.account
	if !p.mayHave(e.ip) {
		return e.node
	}
	out.Labels, out.UID = p.labels, p.uid
	out.Workload, out.Locality = p.k.String(), p.locality
	out.Network = cmp.Or(p.network, out.Network)
	return cmp.Or(p.node, e.node)
}

// withhold leaves an endpoint out until its pod is seen: it may take mutual TLS,
// and its account is not known. After a while that is a problem.
func (j *joined) withhold(e *sliceEndpoint, in endpointContext, n *objectProblems) {
	since := in.absent[e.id()].since
	if since.IsZero() {
		since = in.now
	}
	j.keep(e, absence{since: since})
	due := since.Add(podPatience)
	if in.now.Before(due) {
		if j.due.IsZero() || due.Before(j.due) {
			j.due = due
		}
		return
	}
	n.Add(codePod, index("endpoints", e.place)+".targetRef",
		"the cluster shows no running pod %s%s, so it is not known whether %s takes mutual TLS; this endpoint is excluded; correct or remove the reference", federation.Quote(e.pod), withUID(e.podUID), e.ip)
}

func withUID(uid string) string {
	if uid == "" {
		return ""
	}
	return " with the UID " + federation.Quote(uid)
}

func (j *joined) keep(e *sliceEndpoint, a absence) {
	if j.absent == nil {
		j.absent = map[endpointID]absence{}
	}
	j.absent[e.id()] = a
}

// podKey is the key of a pod; of none that of nothing.
func podKey(p *pod) key {
	if p == nil {
		return key{}
	}
	return p.k
}

func (in endpointContext) locality(name string) federation.Locality {
	if n := in.nodes[name]; n != nil {
		return n.locality
	}
	return federation.Locality{}
}
