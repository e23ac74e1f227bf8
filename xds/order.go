package xds

import (
	"slices"
	"time"

	"isthmus.dev/isthmus/xds/envoy"
)

// verdict is what is to be done about a name: send it, say that it is gone, or
// neither; held: not before until, or not before something changes if zero.
type verdict struct {
	send   *resource
	remove bool
	held   bool
	until  time.Time
}

// judge decides on one name that is looked at.
func (s *streamState) judge(sub *subscription, name string, w trigger) verdict {
	target, e := sub.desired(name), sub.client.slots.get(name)
	if target != nil {
		return s.judgePresent(sub, target, e, w)
	}
	if e.sent == nil {
		return verdict{remove: w.tell && sub.delta}
	}
	if !sub.delta && !sub.kind.Has(envoy.Rooted) { // the protocol has no word for it
		sub.client.sent(name, nil)
		sub.client.slots.set(name, entry{})
		return verdict{}
	}
	v := verdict{remove: true}
	if !w.urgent {
		v.held, v.until = s.stillNeeded(sub, e.sent, w)
	}
	return v
}

func (s *streamState) judgePresent(sub *subscription, target *resource, e entry, w trigger) verdict {
	switch {
	case !target.hasBody():
		return verdict{}
	case sameContent(target, e.sent) && !w.resend:
		if e.sent != target { // the same from another source, or what the client said it has
			if e.acked == e.sent {
				e.acked = target
				sub.client.slots.set(target.name, e)
			}
			sub.client.sent(target.name, target)
		}
		return verdict{}
	}
	v := verdict{send: target}
	if !w.urgent && s.needsNewCluster(sub, target) {
		v.held, v.until = true, w.since.Add(s.timing.addition)
	}
	return v
}

// needsNewCluster reports whether the listener or route refers to a cluster that the
// client has not accepted yet, but is going to get.
func (s *streamState) needsNewCluster(sub *subscription, r *resource) bool {
	cds := s.subs[envoy.ClusterType]
	if cds == nil || !sub.kind.Has(envoy.Refers) {
		return false
	}
	return slices.ContainsFunc(r.refs.clusters, func(name string) bool {
		e := cds.client.slots.get(name)
		if e.certain() {
			return false
		}
		if e.sent != nil {
			return true
		}
		s.refresh() // the listener may be of a later snapshot than the clusters
		return cds.desired(name) != nil
	})
}

// stillNeeded reports whether a resource that is gone must stay with the client
// for now: a cluster while the client may still use it, endpoints while their
// cluster stays.
func (s *streamState) stillNeeded(sub *subscription, r *resource, w trigger) (held bool, until time.Time) {
	switch {
	case sub.kind.Has(envoy.Assigned):
		return s.retains(r.name), time.Time{}
	case sub.kind.Has(envoy.Referred):
		until = w.since.Add(s.timing.removal)
		for _, kind := range referringTypes {
			referrer := s.subs[kind]
			if referrer == nil || !s.usage(referrer).has(r.name) {
				continue
			}
			held = true
			if referrer.nacked {
				return true, time.Time{}
			}
		}
		return held, until
	}
	return false, time.Time{}
}

// needs is what is found out once for all names that are decided on together.
type needs struct {
	usages   map[envoy.Type]usage
	retained map[string]struct{} // names of endpoints
}

func (s *streamState) usage(referrer *subscription) usage {
	u, known := s.needs.usages[referrer.kind]
	if !known {
		if s.needs.usages == nil {
			s.needs.usages = map[envoy.Type]usage{}
		}
		u = referrer.client.usage()
		s.needs.usages[referrer.kind] = u
	}
	return u
}

// retains reports whether a cluster stays with the client only because it may still
// be used, and that its endpoints have this name.
func (s *streamState) retains(assignment string) bool {
	if s.needs.retained == nil {
		s.needs.retained = s.retained()
	}
	_, retained := s.needs.retained[assignment]
	return retained
}

func (s *streamState) retained() map[string]struct{} {
	names := map[string]struct{}{}
	cds := s.subs[envoy.ClusterType]
	if cds == nil {
		return names
	}
	for name := range cds.queue.all() {
		if sent := cds.client.slots.get(name).sent; sent != nil && cds.desired(name) == nil {
			for _, assignment := range sent.refs.assignments {
				names[assignment] = struct{}{}
			}
		}
	}
	return names
}

func sortedNames(names []string) []string {
	slices.Sort(names)
	return names
}
