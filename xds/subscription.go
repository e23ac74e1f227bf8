package xds

import (
	"slices"
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
	prepare(names []string) // that will be asked for soon
	list() []string
	since(version uint64) (changed []logEntry, now uint64, ok bool)
	// accepted is what some client accepted last under the name; nil: nothing known.
	accepted(name string) *resource
	// causes are the objects of which the parts of the resource are made, where that
	// is known.
	causes(name string, parts []string) map[string][]federation.ObjectKey
}

// cursor is a source and how far the subscription has read it.
type cursor struct {
	source source
	at     uint64
	read   bool // at is set
}

// entry is what the hub knows of one resource on the client's side.
type entry struct {
	sent   *resource // last told; nil: told that it is gone
	acked  *resource // last accepted; nil: none
	lapsed bool      // told that acked is gone; what came after that is not accepted yet
}

// certain tells that the client has some content of the resource.
func (e entry) certain() bool { return e.acked != nil && !e.lapsed }

// want says why a name is looked at.
type want struct {
	since  time.Time
	urgent bool // answers a request: neither paced nor held
	resend bool // is sent even if the client has it
	tell   bool // its absence is told even if the client never had it
}

// flight is a response that is not answered yet.
type flight struct {
	nonce, version string
	sent           time.Time
	snapshot       uint64
	resources      []*resource // those in it that were not accepted before
	removed        []string
	repair         bool // it repeats what was removed in a refused response
}

// subscription is one type on one stream: what the client wants, what it was
// told, and what is still to be told. It is for one goroutine and reads no
// clock.
type subscription struct {
	kind    envoy.Type
	delta   bool
	cursors []cursor
	started bool // the first request was read

	wildcard bool
	named    bool // the client named something once: the legacy wildcard is over

	slots   *slots
	live    int    // slots with something sent, those apart that exist whatever the services
	sum     digest // over what was sent last
	claims  int    // names of initial_resource_versions without a resource that are not answered yet
	pending map[string]want
	urgent  bool // something in pending may be urgent
	reply   bool // a response is due even if nothing differs

	inflight   []*flight // oldest first
	lastNonce  string
	lastSent   time.Time
	refused    map[digest]string    // content that the client refused, and its words
	barred     map[string]rejection // names whose present content is refused: the type stays NACKED
	nacked     bool                 // the last answer was a refusal
	refusedAt  uint64               // snapshot of what was refused last
	repairing  bool                 // the next response is a repair
	empty      emptiness
	sync       fleet.Sync
	redirected time.Time // set: the sources are new, and nobody looked at what they have
	repair     repair
	shared     *fallbacks
	changed    bool // since it was published last, or it may have
}

func newSubscription(kind envoy.Type, delta bool, names *nameTable, of *account, shared *fallbacks) *subscription {
	return &subscription{
		kind: kind, delta: delta, slots: newSlots(names, of),
		pending: map[string]want{}, refused: map[digest]string{}, barred: map[string]rejection{},
		sync: fleet.Sync{State: fleet.NotRequested}, repair: newRepair(), shared: shared,
	}
}

// close gives back what the subscription holds.
func (s *subscription) close() {
	s.dropClaims()
	s.slots.close()
}

// whole tells that every response carries the complete state.
func (s *subscription) whole() bool { return !s.delta && s.rooted() }

// rooted tells that the type is one whose set the hub decides: clusters and
// listeners, the types that know wildcards.
func (s *subscription) rooted() bool {
	return s.kind == envoy.ClusterType || s.kind == envoy.ListenerType
}

func (s *subscription) wants(name string) bool { return s.wildcard || s.slots.isNamed(name) }

func (s *subscription) setSources(sources []source) {
	s.changed = true
	s.cursors = make([]cursor, len(sources))
	for i, src := range sources {
		s.cursors[i] = cursor{source: src}
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
				if s.slots.get(e.name) != (entry{}) || s.wants(e.name) {
					s.look(e.name, want{since: now})
				}
			}
			if c.at = at; !ok {
				s.lookAtAll(want{since: now})
			}
		}
	}
	if !s.redirected.IsZero() {
		s.lookAtAll(want{since: s.redirected})
		s.redirected = time.Time{}
	}
}

// look adds a reason to look at the name; reasons add up, the first time stays.
func (s *subscription) look(name string, w want) {
	if old, ok := s.pending[name]; ok {
		w = want{since: old.since, urgent: w.urgent || old.urgent, resend: w.resend || old.resend, tell: w.tell || old.tell}
	}
	s.pending[name] = w
	s.urgent, s.changed = s.urgent || w.urgent, true
}

// lookAtAll looks at everything that is wanted or was told.
func (s *subscription) lookAtAll(w want) {
	for name := range s.slots.all() {
		s.look(name, w)
	}
	for name := range s.slots.allNamed() {
		s.look(name, w)
	}
	if !s.wildcard {
		return
	}
	for _, c := range s.cursors {
		for _, name := range c.source.list() {
			s.look(name, w)
		}
	}
}

// prepare has the sources make what will be judged.
func (s *subscription) prepare(urgentOnly bool) {
	names := make([]string, 0, len(s.pending))
	for name, w := range s.pending {
		if s.wants(name) && (w.urgent || !urgentOnly) {
			names = append(names, name)
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
	delete(s.barred, name)
	if !s.wants(name) {
		return nil
	}
	for _, c := range s.cursors {
		r := c.source.get(name)
		if r == nil {
			continue
		}
		if text, bad := s.refused[r.hash]; bad {
			s.barred[name] = s.refusedWhole(name, text)
			return s.slots.get(name).acked
		}
		return s.permitted(r, c.source)
	}
	return nil
}

// tell notes that the client is told r; nil is gone.
func (s *subscription) tell(name string, r *resource) {
	e := s.slots.get(name)
	if e.sent != nil {
		s.sum = s.sum.minus(e.sent.hash)
		s.live -= e.sent.weight()
	}
	if r != nil {
		s.sum = s.sum.plus(r.hash)
		s.live += r.weight()
	}
	e.lapsed = e.acked != nil && (e.lapsed || r == nil)
	e.sent = r
	s.slots.put(name, e)
}

// shrink lets go of the memory of many names that were looked at together.
func (s *subscription) shrink() {
	if len(s.pending) == 0 {
		s.pending = map[string]want{}
	}
}

// drop forgets what the client dropped itself.
func (s *subscription) drop(name string) {
	s.tell(name, nil)
	s.slots.put(name, entry{})
	delete(s.barred, name)
	delete(s.pending, name)
	s.slots.forgetRewarm(name)
}

// told returns everything that the client has been told to have, by name.
func (s *subscription) told() []*resource {
	var all []*resource
	for _, e := range s.slots.all() {
		if e.sent != nil {
			all = append(all, e.sent)
		}
	}
	sortResources(all)
	return all
}

func sortResources(all []*resource) {
	slices.SortFunc(all, func(a, b *resource) int {
		if a.name < b.name {
			return -1
		}
		if a.name > b.name {
			return 1
		}
		return 0
	})
}
