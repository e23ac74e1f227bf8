package kubernetes

import (
	"iter"
	"net/netip"
	"slices"
)

// sliceTable has the EndpointSlices, and finds them by what they refer to.
type sliceTable struct {
	all       map[key]*slice
	ofService references[key, key]
	ofPod     references[key, key]
	onNode    references[string, key]
	atAddress references[netip.Addr, key] // of an endpoint
}

func newSliceTable() sliceTable {
	return sliceTable{
		all: map[key]*slice{}, ofService: references[key, key]{}, ofPod: references[key, key]{},
		onNode: references[string, key]{}, atAddress: references[netip.Addr, key]{},
	}
}

// of are the slices of a service.
func (t sliceTable) of(service key) []*slice {
	var out []*slice
	for name := range t.ofService[service].all() {
		out = append(out, t.all[name])
	}
	return out
}

// behind yields the endpoints that the pod is behind, each with its service.
func (t sliceTable) behind(p *pod) iter.Seq2[key, endpointID] {
	named := []set[key]{t.ofPod[p.k]}
	if p.addressable() {
		for _, ip := range p.ips {
			named = append(named, t.atAddress[ip])
		}
	}
	return func(yield func(key, endpointID) bool) {
		for _, of := range named {
			for k := range of.all() {
				if sl := t.all[k]; sl.k.Namespace == p.k.Namespace && !sl.behind(p, yield) {
					return
				}
			}
		}
	}
}

// behind yields those of the slice; false: no more are wanted.
func (s *slice) behind(p *pod, yield func(key, endpointID) bool) bool {
	for i := range s.endpoints {
		e := &s.endpoints[i]
		if (e.names(p) || p.addressable() && slices.Contains(p.ips, e.ip)) && !yield(s.owner(), e.id()) {
			return false
		}
	}
	return true
}

// refer notes what the slice refers to.
func (t sliceTable) refer(s *slice) {
	t.ofService.add(s.owner(), s.k)
	for i := range s.endpoints {
		e := &s.endpoints[i]
		t.atAddress.add(e.ip, s.k)
		if e.pod != "" {
			t.ofPod.add(key{Namespace: s.k.Namespace, Name: e.pod}, s.k)
		}
		if e.node != "" {
			t.onNode.add(e.node, s.k)
		}
	}
}

// unrefer forgets what refer noted.
func (t sliceTable) unrefer(s *slice) {
	t.ofService.remove(s.owner(), s.k)
	for i := range s.endpoints {
		e := &s.endpoints[i]
		t.atAddress.remove(e.ip, s.k)
		t.ofPod.remove(key{Namespace: s.k.Namespace, Name: e.pod}, s.k)
		t.onNode.remove(e.node, s.k)
	}
}
