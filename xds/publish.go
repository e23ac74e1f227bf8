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
		Waits: len(s.queue.pending) > 0 || s.reply, Told: s.client.slots.delivered(),
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

// open lists what the client does not have as it is now.
func (s *subscription) open() ([]fleet.OpenResource, fleet.RolloutState) {
	flying, bulk := 0, fleet.Unaffected
	for _, f := range s.responses.unanswered {
		flying += len(f.resources)
	}
	if flying > maxOpen {
		bulk = fleet.Delivered
	}
	if len(s.queue.pending) > maxOpen {
		bulk = fleet.Waiting
	}
	states := map[string]fleet.RolloutState{}
	for name := range s.nacks.barred {
		states[name] = max(bulk, fleet.Accepted)
		if s.client.slots.get(name).sent == nil {
			states[name] = fleet.Waiting // it has nothing in its stead
		}
	}
	if bulk == fleet.Unaffected {
		for _, f := range s.responses.unanswered {
			for _, r := range f.resources {
				states[r.name] = max(states[r.name], fleet.Delivered)
			}
		}
	}
	if bulk != fleet.Waiting {
		for name := range s.queue.pending {
			states[name] = fleet.Waiting
		}
	}
	return s.numbered(states), bulk
}

func (s *subscription) numbered(states map[string]fleet.RolloutState) []fleet.OpenResource {
	if len(states) == 0 {
		return nil
	}
	all := make([]fleet.OpenResource, 0, len(states))
	for name, state := range states {
		if number, held := s.client.slots.names.find(name); held {
			rejection, refused := s.nacks.barred[name]
			all = append(all, fleet.OpenResource{
				Number: number, State: state, Refused: refused, Parts: rejection.parts,
				Searching: rejection.searching,
			})
		}
	}
	slices.SortFunc(all, func(a, b fleet.OpenResource) int { return cmp.Compare(a.Number, b.Number) })
	return all
}

// number is part of source.
func (g *group) number() fleet.Group { return g.id }

// number is part of source: a secret is not made from objects.
func (*secretSource) number() fleet.Group { return 0 }
