package xds

import (
	"iter"
	"slices"
	"strings"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/envoy"
)

// everything is the name that subscribes to all resources of a type.
const everything = "*"

// source is what a subscription reads: a group.
type source interface {
	number() fleet.Group // 0: none
	sync(s *federation.Snapshot) uint64
	get(name string) *resource
	prepare(names iter.Seq[string]) // that will be asked for soon
	list() []string                 // of every name that may exist; sorted if that costs little; not to be changed
	since(version uint64) (changed []logEntry, now uint64, ok bool)
	// accepted is what some client accepted last under the name; nil: nothing known.
	accepted(name string) *resource
	// causes are the objects of which the parts of the resource are made, where that
	// is known.
	causes(name string, parts []string) map[string][]federation.ObjectKey
}

// cursor is a source and the version up to which the subscription has read it.
type cursor struct {
	source source
	at     uint64
	read   bool // at is set
}

// entry is what the hub knows of one resource on the client's side.
type entry struct {
	sent   *resource // sent last; nil: its removal was sent
	acked  *resource // last accepted; nil: none
	lapsed bool      // the removal of acked was sent; what came after that is not accepted yet
}

// certain reports whether the client has some content of the resource.
func (e entry) certain() bool { return e.acked != nil && !e.lapsed }

// subscription is one type on one stream: what the client wants of which sources, and what
// it has, is to be sent, has not answered and refuses, each a part of its own. It is for one
// goroutine and reads no clock.
type subscription struct {
	kind    envoy.Type
	delta   bool
	cursors []cursor
	groups  []fleet.Group // the numbers of the sources; the fleet has them, too
	started bool          // the first request was read

	wildcard bool
	named    bool // the client named something once: the legacy wildcard is over

	client    clientState
	queue     workQueue
	responses responses
	nacks     nacks

	reply      bool   // a response is due even if nothing differs
	nacked     bool   // the last answer was a refusal
	refusedAt  uint64 // snapshot of what was refused last
	repairing  bool   // the next response is a repair
	empty      emptiness
	sync       fleet.Sync
	redirected time.Time // set: the sources are new, and have not been looked at
	changed    bool      // since it was published last, or it may have
}

func newSubscription(kind envoy.Type, delta bool, names *nameTable, of *account, shared *fallbacks) *subscription {
	return &subscription{
		kind: kind, delta: delta, sync: fleet.Sync{State: fleet.NotRequested},
		client: clientState{slots: newSlots(names, of)}, queue: newWorkQueue(), nacks: newNacks(kind, shared),
	}
}

// whole reports whether every response carries the complete state.
func (s *subscription) whole() bool { return !s.delta && s.kind.Has(envoy.Rooted) }

func (s *subscription) includes(name string) bool { return s.wildcard || s.client.slots.isNamed(name) }

func (s *subscription) setSources(sources []source) {
	s.changed = true
	s.cursors, s.groups = make([]cursor, len(sources)), nil
	for i, src := range sources {
		s.cursors[i] = cursor{source: src}
		if id := src.number(); id != 0 {
			s.groups = append(s.groups, id)
		}
	}
}

// redirect has the subscription read other sources from now on: everything is
// looked at once they are at the snapshot.
func (s *subscription) redirect(sources []source, now time.Time) {
	s.setSources(sources)
	s.redirected = now
}

// collect notes what changed up to the snapshot.
func (s *subscription) collect(snapshot *federation.Snapshot, now time.Time) {
	for i := range s.cursors {
		c := &s.cursors[i]
		version := c.source.sync(snapshot)
		switch {
		case !c.read:
			c.at, c.read = version, true
		case version != c.at:
			changed, at, ok := c.source.since(c.at)
			for _, e := range changed {
				if s.client.slots.get(e.name) != (entry{}) || s.includes(e.name) {
					s.queue.enqueue(e.name, trigger{since: now})
				}
			}
			c.at = at
			if !ok {
				s.enqueueAll(trigger{since: now})
			}
		}
	}
	if !s.redirected.IsZero() {
		s.enqueueAll(trigger{since: s.redirected})
		s.redirected = time.Time{}
	}
}

// enqueueAll looks at everything that is wanted or was sent.
func (s *subscription) enqueueAll(w trigger) {
	var lists [][]string
	total := 0
	if s.wildcard {
		for _, c := range s.cursors {
			names := c.source.list()
			lists, total = append(lists, names), total+len(names)
		}
	}
	s.queue.expect(total)
	for name := range s.client.slots.all() {
		s.queue.enqueue(name, w)
	}
	for name := range s.client.slots.allNamed() {
		s.queue.enqueue(name, w)
	}
	for _, names := range lists {
		for _, name := range names {
			s.queue.enqueue(name, w)
		}
	}
}

// prepare has the sources make what will be judged.
func (s *subscription) prepare(urgentOnly bool) {
	names := func(yield func(string) bool) {
		for name, w := range s.queue.all() {
			if s.includes(name) && (w.urgent || !urgentOnly) && !yield(name) {
				return
			}
		}
	}
	for _, c := range s.cursors {
		c.source.prepare(names)
	}
}

// desired is what the client is to have under the name: what exists and was not
// refused, else what it last accepted.
func (s *subscription) desired(name string) *resource {
	s.changed = true
	delete(s.nacks.barred, name)
	if !s.includes(name) {
		return nil
	}
	for _, c := range s.cursors {
		r := c.source.get(name)
		if r == nil {
			continue
		}
		return s.nacks.inPlaceOf(r, s.client.slots, c.source)
	}
	return nil
}

// drop forgets what the client dropped itself.
func (s *subscription) drop(name string) {
	s.client.forget(name)
	delete(s.nacks.barred, name)
	s.queue.remove(name)
	s.queue.shrink() // a client that asks for names and drops them before anything is sent gets no room for it
}

func sortResources(all []*resource) {
	slices.SortFunc(all, func(a, b *resource) int { return strings.Compare(a.name, b.name) })
}
