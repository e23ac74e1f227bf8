package xds

import (
	"slices"
	"time"

	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/envoy"
)

// response is one response of either variant.
type response struct {
	kind      envoy.Type
	delta     bool
	version   string
	nonce     string
	resources []*resource
	removed   []string  // delta only
	since     time.Time // when the first change in it was seen; zero: it answers a request
}

// timing says how long things wait.
type timing struct {
	pace       time.Duration // between pushes of a type
	unanswered time.Duration // for an answer, before the next push goes anyway
	addition   time.Duration // of what refers to a new cluster, for the cluster's ACK
	removal    time.Duration // of a cluster, for the ACK of what still refers to it
	proof      time.Duration // of an empty set, for a second proof; a detach has 5 s in all
	access     time.Duration // between two looks whether a stream may go on (S11)
	refusal    time.Duration // before a client that may not report is refused: it reconnects at once, with a warning in its log
}

var defaultTiming = timing{
	pace: 20 * time.Millisecond, unanswered: time.Second, addition: 5 * time.Second, removal: 15 * time.Second,
	proof: 4 * time.Second, access: 25 * time.Second,
	refusal: 10 * time.Minute,
}

// emptiness is the moment at which a set became empty.
type emptiness struct {
	since    time.Time
	snapshot uint64
}

// maxResponseBytes bounds the resources of one response where responses may be split.
const maxResponseBytes = 2 << 20

// batch is what a response is going to change.
type batch struct {
	changed  []*resource
	removed  []string
	since    time.Time // when the first change in it that answers no request was seen; zero: there is none
	heldTill time.Time // the first moment at which something held may go
}

func (b *batch) hold(until time.Time) { b.heldTill = earliest(b.heldTill, until) }

// earliest is the earlier of two moments; zero is never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// deliver returns the next response of the type, or when to look again.
func (s *streamState) deliver(sub *subscription, now time.Time) (*response, time.Time) {
	if sub.queue.size() == 0 && !sub.reply {
		return nil, time.Time{}
	}
	freeAt := sub.responses.freeAt(s.timing)
	free := !now.Before(freeAt)
	if !free && !sub.queue.urgent && !sub.reply {
		return nil, freeAt
	}
	sub.changed = true
	refusing := len(sub.nacks.barred) > 0
	b := s.gather(sub, free, now)
	if refusing {
		sub.forgive(now)
	}
	if !free {
		b.hold(freeAt)
	}
	s.guard(sub, &b, now)
	if len(b.changed) == 0 && len(b.removed) == 0 && !sub.reply {
		switch {
		case sub.queue.size() > 0:
			return nil, b.heldTill
		case len(sub.responses.unanswered) == 0 && sub.proceed(now): // what was tried comes to nothing that can be sent
			return s.deliver(sub, now)
		}
		return nil, time.Time{}
	}
	return s.send(sub, b, now), time.Time{}
}

// gather decides on every name that may be decided on now. What is settled or
// goes into the batch is pending no more.
func (s *streamState) gather(sub *subscription, free bool, now time.Time) batch {
	var b batch
	s.needs = needs{}
	sub.prepare(!free)
	if sub.queue.size() > fewNames {
		b.changed = make([]*resource, 0, sub.queue.size())
	}
	for name, w := range sub.queue.all() {
		if !free && !w.urgent {
			continue
		}
		v := s.judge(sub, name, w)
		if v.held && (v.until.IsZero() || now.Before(v.until)) {
			b.hold(v.until)
			continue
		}
		switch {
		case v.send != nil:
			b.changed = append(b.changed, v.send)
		case v.remove:
			b.removed = append(b.removed, name)
		default:
			sub.queue.remove(name)
			continue
		}
		if !w.urgent {
			b.since = earliest(b.since, w.since)
		}
	}
	sub.queue.urgent = false
	sub.queue.shrink()
	s.leaveForLater(sub, &b)
	return b
}

// leaveForLater leaves for later responses what is too much for one. Of secrets that is
// more than one: Envoy refuses a response as a whole, and one whose files are
// missing is not to keep the others from it.
func (s *streamState) leaveForLater(sub *subscription, b *batch) {
	sortResources(b.changed)
	if sub.whole() {
		return
	}
	size, apart := 0, sub.kind.Has(envoy.Confidential)
	for i, r := range b.changed {
		size += r.size()
		if i > 0 && (size > maxResponseBytes || apart) {
			for _, later := range b.changed[i:] {
				sub.queue.enqueue(later.name, trigger{urgent: true})
			}
			b.changed = b.changed[:i]
			return
		}
	}
}

// guard holds back a set without any service after one that had some: it needs a
// second proof, which is a later snapshot or time.
func (s *streamState) guard(sub *subscription, b *batch, now time.Time) {
	stays := func(r *resource) bool { return !r.fixed }
	gone := 0
	for _, name := range b.removed {
		if sent := sub.client.slots.get(name).sent; sent != nil {
			gone += sent.weight()
		}
	}
	if !sub.kind.Has(envoy.Rooted) || b.since.IsZero() || gone == 0 || slices.ContainsFunc(b.changed, stays) || sub.client.live > gone {
		sub.empty = emptiness{}
		return
	}
	if sub.empty.since.IsZero() {
		sub.empty = emptiness{since: now, snapshot: s.snapshot}
		s.count(EmptyHeld, sub.kind)
	}
	if until := sub.empty.since.Add(s.timing.proof); s.snapshot == sub.empty.snapshot && now.Before(until) {
		b.removed = nil
		b.hold(until)
	}
}

// send makes the response and notes what it tells the client.
func (s *streamState) send(sub *subscription, b batch, now time.Time) *response {
	f := &sentResponse{nonce: s.nonce(), sent: now, snapshot: s.snapshot, repair: sub.repairing}
	makeRoom(sub.client.slots, len(b.changed))
	sub.queue.leave(b)
	for _, r := range b.changed {
		if e := sub.client.sent(r.name, r); e.acked != r || e.lapsed {
			f.resources = append(f.resources, r)
		}
	}
	for _, name := range b.removed {
		if sub.client.slots.get(name) != (entry{}) { // else the client has nothing to forget, and its answer tells nothing
			f.removed = append(f.removed, sub.client.slots.name(name))
		}
		sub.client.sent(name, nil)
	}
	s.parents(sub, b.changed, now)
	f.version = sub.client.sum.String()
	r := &response{
		kind: sub.kind, delta: s.delta, version: f.version, nonce: f.nonce, resources: b.changed,
		removed: sortedNames(b.removed), since: b.since,
	}
	if sub.whole() {
		r.resources, r.removed = sub.client.resources(), nil
	}
	sub.responses.add(f)
	sub.reply, sub.repairing = false, false
	sub.sync.VersionSent, sub.sync.SnapshotSent = f.version, f.snapshot
	if len(sub.nacks.barred) == 0 && sub.sync.State != fleet.Pending {
		sub.sync.State, sub.sync.Since = fleet.Pending, now
	}
	return r
}

// parents notes what the client will want (again) because it gets the
// resources: the endpoints of a cluster go unasked, since a delta client waits
// for them without a word.
func (s *streamState) parents(sub *subscription, changed []*resource, now time.Time) {
	eds, rds, sds := s.subs[envoy.EndpointType], s.subs[envoy.RouteType], s.subs[envoy.SecretType]
	for _, r := range changed {
		for _, name := range r.refs.secrets {
			if sds != nil && sds.includes(name) {
				sds.client.slots.rewarm(name)
			}
		}
		for _, name := range r.refs.assignments {
			switch {
			case eds == nil:
				if len(s.warming) == 0 {
					s.warming = make(map[string]struct{}, len(changed))
				}
				s.warming[name] = struct{}{}
			case eds.includes(name):
				eds.queue.enqueue(name, trigger{since: now, urgent: true, resend: true})
				eds.client.slots.rewarm(name)
			}
		}
		for _, name := range r.refs.routes {
			if rds != nil && rds.includes(name) {
				rds.client.slots.rewarm(name)
			}
		}
	}
}
