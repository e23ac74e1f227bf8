package kubernetes

import (
	"cmp"
	"net/netip"
	"slices"
	"time"
)

// podPatience is how long the pod behind an endpoint may be missing before that
// is a problem. Watches of slices and pods are independent: a slice may be seen
// before its pods.
const podPatience = 10 * time.Second

// endpointID names an endpoint of a service across versions of its slices.
type endpointID struct {
	ip       netip.Addr
	pod, uid string
}

func (e *sliceEndpoint) id() endpointID { return endpointID{e.ip, e.pod, e.podUID} }

// absence is why the pod behind an endpoint is not among those of the cluster.
type absence struct {
	last  *pod      // what was known of it; nil: it was never seen
	since time.Time // of an endpoint whose pod was never seen
}

// backing says what is known of the workload behind an endpoint. That it is not
// known whether a workload takes mutual TLS must never look like "it does not":
// traffic would leave in plain text (R80).
type backing int

const (
	backedByPod     backing = iota // by a known pod, or by one that was known
	backedByMissing                // by a pod that was never seen: nothing is known
	backedByNoPod                  // by something that is not a pod of this cluster
)

// backing finds the pod behind the endpoint: the one that it refers to, else the
// one that has its address, else the one that was there before.
func (e *sliceEndpoint) backing(sl *slice, in endpointContext, n *objectProblems) (*pod, backing) {
	p := in.pods[key{Namespace: sl.k.Namespace, Name: e.pod}]
	named := p != nil && e.names(p)
	if named && p.mayHave(e.ip) {
		return p, backedByPod
	}
	if named {
		n.Add(codeTarget, index("endpoints", e.place)+".targetRef", "pod %s does not have the address %s; its labels are not used", p.k, e.ip)
	}
	if at := in.podAt(sl.k.Namespace, e.ip); at != nil {
		return at, backedByPod
	}
	before := in.absent[e.id()]
	switch {
	case named:
		return p, backedByPod
	case before.last != nil:
		return before.last, backedByPod
	case e.pod == "":
		return nil, backedByNoPod
	}
	return nil, backedByMissing
}

// names reports whether the endpoint refers to that pod, and not to an earlier or
// later one of its name.
func (e *sliceEndpoint) names(p *pod) bool {
	return e.pod == p.k.Name && (e.podUID == "" || p.uid == "" || e.podUID == p.uid)
}

// mayHave reports whether the address can be the pod's; the API server may not show
// its addresses yet.
func (p *pod) mayHave(ip netip.Addr) bool { return len(p.ips) == 0 || slices.Contains(p.ips, ip) }

// addressable reports whether the pod can be found by its addresses: those of a pod
// on its host's network are shared, those of one that is over may be reused.
func (p *pod) addressable() bool { return !p.hostNetwork && !p.over }

// podAt is the pod of the namespace that has the address.
func (in endpointContext) podAt(namespace string, ip netip.Addr) *pod {
	var found *pod
	for k := range in.podsAt[ip].all() {
		if k.Namespace == namespace && (found == nil || cmp.Compare(k.Name, found.k.Name) < 0) {
			found = in.pods[k]
		}
	}
	return found
}

// staysBehind reports whether the later version of the pod is behind the same
// endpoints.
func (p *pod) staysBehind(later *pod) bool {
	return later != nil && p.uid == later.uid && slices.Equal(p.ips, later.ips) && p.addressable() == later.addressable()
}

// indexAddresses notes at which addresses the pod is.
func (m *model) indexAddresses(p *pod) {
	if p == nil || !p.addressable() {
		return
	}
	for _, ip := range p.ips {
		m.podsAt.add(ip, p.k)
		m.touchSlices(m.slices.atAddress[ip])
	}
}

// unindexAddresses forgets what indexAddresses noted.
func (m *model) unindexAddresses(p *pod) {
	if p == nil || !p.addressable() {
		return
	}
	for _, ip := range p.ips {
		m.podsAt.remove(ip, p.k)
		m.touchSlices(m.slices.atAddress[ip])
	}
}

// remember keeps what is known of a pod that goes, or that another one of its
// name replaces, for the endpoints that it is behind: they are used until their
// slices drop them, and must not fall back to plain text meanwhile.
func (m *model) remember(old *pod) {
	for service, endpoint := range m.slices.behind(old) {
		m.absences.of(service)[endpoint] = absence{last: old}
	}
}

// overdue has those services joined again whose time has come.
func (m *model) overdue() {
	now := m.now()
	for k, d := range m.absences.due {
		if !now.Before(d) {
			delete(m.absences.due, k)
			m.dirtyServices[k] = struct{}{}
		}
	}
}
