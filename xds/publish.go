package xds

import (
	"cmp"
	"maps"
	"slices"

	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/envoy"
)

// maxOpen bounds the resources on their way that a stream lists singly in the fleet;
// with more, all of the type count as being on their way.
const maxOpen = 256

// publish tells the fleet what the stream was sent and has accepted, where that
// changed, and of which snapshot it knows what it is to get.
func (st *stream) publish() {
	clear(st.changed)
	for kind, sub := range st.state.subs {
		if !sub.changed && !sub.queue.grown && !sub.client.slots.moved || sub.sync.State == fleet.NotRequested {
			continue
		}
		sub.changed, sub.queue.grown = false, false
		now := sub.delivery()
		if before := st.published[kind]; before != nil && before.Equal(now) {
			continue
		}
		st.noteUntraced(kind, now)
		st.published[kind], st.changed[string(kind)] = now, now
	}
	if len(st.changed) == 0 && st.served && st.upTo == st.state.snapshot {
		return
	}
	st.served, st.upTo = true, st.state.snapshot
	st.report.Deliver(st.upTo, st.changed)
}

// delivery is the subscription as the fleet shows it.
func (s *subscription) delivery() *fleet.Delivery {
	d := &fleet.Delivery{
		Sync: s.sync, Groups: s.groups, Wildcard: s.wildcard, Named: s.client.slots.subscribed(),
		Waits: s.queue.size() > 0 || s.reply, Told: s.client.slots.delivered(),
	}
	if n := len(s.responses.unanswered); n > 0 {
		d.InFlight = s.responses.unanswered[n-1].snapshot
	}
	if len(s.nacks.barred) > 0 {
		d.Refused = s.refusedAt
	}
	d.Open, d.Bulk = s.open()
	if s.kind.Has(envoy.Confidential) {
		d.RefusedSecrets = slices.Sorted(maps.Keys(s.nacks.barred))
	}
	return d
}

// open lists what the client does not have as it is now, sorted by number.
func (s *subscription) open() ([]fleet.OpenResource, fleet.RolloutState) {
	flying, waiting, bulk := 0, s.queue.size(), fleet.Unaffected
	for _, f := range s.responses.unanswered {
		flying += len(f.resources)
	}
	if flying > maxOpen {
		bulk = fleet.Delivered
	}
	if waiting > maxOpen {
		bulk = fleet.Waiting
	}
	room := len(s.nacks.barred)
	if bulk == fleet.Unaffected {
		room += flying
	}
	if bulk != fleet.Waiting {
		room += waiting
	}
	all := slices.Grow([]fleet.OpenResource(nil), room)
	note := func(name string, r fleet.OpenResource) {
		if n := s.client.slots.names.find(name); n != nil {
			r.Number = n.number
			all = append(all, r)
		}
	}
	for name, rejection := range s.nacks.barred {
		r := fleet.OpenResource{State: max(bulk, fleet.Accepted), Refused: true, Parts: rejection.parts, Searching: rejection.searching}
		if s.client.slots.get(name).sent == nil {
			r.State = fleet.Waiting // it has nothing in its stead
		}
		note(name, r)
	}
	if bulk == fleet.Unaffected {
		for _, f := range s.responses.unanswered {
			for _, r := range f.resources {
				note(r.name, fleet.OpenResource{State: fleet.Delivered})
			}
		}
	}
	if bulk != fleet.Waiting {
		for name := range s.queue.all() {
			note(name, fleet.OpenResource{State: fleet.Waiting})
		}
	}
	return onceEach(all), bulk
}

// onceEach sorts by number, and makes one of those with the same: it has the worst of their states,
// and what the one that is refused says.
func onceEach(all []fleet.OpenResource) []fleet.OpenResource {
	slices.SortFunc(all, byNumber)
	kept := 0
	for _, r := range all {
		if kept == 0 || all[kept-1].Number != r.Number {
			all[kept] = r
			kept++
			continue
		}
		last := &all[kept-1]
		worst := max(last.State, r.State)
		if r.Refused {
			*last = r
		}
		last.State = worst
	}
	clear(all[kept:])
	return all[:kept]
}

func byNumber(a, b fleet.OpenResource) int { return cmp.Compare(a.Number, b.Number) }

// number is part of source.
func (g *group) number() fleet.Group { return g.id }

// number is part of source: a secret is not made from objects.
func (*secretSource) number() fleet.Group { return 0 }
