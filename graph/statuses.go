package graph

import (
	"fmt"
	"hash/maphash"
	"iter"
	"sync"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/graph/model"
)

// restFactor bounds what following statuses costs: after a look there is no other for
// that many times as long as it took.
const restFactor = 10

// statuses knows when the status of objects changed, for all subscriptions together.
// It looks when a subscription asks it to: without one it costs nothing.
type statuses struct {
	Options
	seed maphash.Seed

	mu       sync.Mutex
	version  uint64 // of the latest look
	of       map[federation.ObjectKey]objectStatus
	snapshot *federation.Snapshot
	fleet    *fleet.Value
	rest     time.Time // no look before
	// followed counts the subscriptions that follow the same objects. Only theirs are
	// looked at; of the others is known how they were when they were last followed.
	followed map[scope]int
}

// scope is the set of objects whose status is followed.
type scope struct {
	inNamespace            bool
	namespace, group, kind string
}

func (f following) scope() scope {
	return scope{inNamespace: f.inNamespace, namespace: f.namespace, group: f.group, kind: f.kind}
}

func (s scope) has(key federation.ObjectKey) bool {
	return following{status: true, inNamespace: s.inNamespace, namespace: s.namespace, group: s.group, kind: s.kind}.hasStatus(key)
}

// objects are those of the snapshot that the scope has.
func (s scope) objects(of *federation.Snapshot) iter.Seq[*federation.Object] {
	all := of.Objects().All()
	switch kind := (federation.Kind{Group: s.group, Name: s.kind}); {
	case s.group == "" || s.kind == "":
	case s.inNamespace:
		all = of.Objects().In(kind, s.namespace)
	default:
		all = of.Objects().Of(kind)
	}
	return func(yield func(*federation.Object) bool) {
		for o := range all {
			if s.has(o.Key) && !kind.Internal(o.Key.Of()) && !yield(o) {
				return
			}
		}
	}
}

// objectStatus represents the status of an object.
type objectStatus struct {
	content uint64
	changed uint64 // the look that found it so
	seen    uint64 // the latest look that found it
}

func newStatuses(o Options) *statuses {
	return &statuses{Options: o, seed: maphash.MakeSeed(), of: map[federation.ObjectKey]objectStatus{}, followed: map[scope]int{}}
}

// follow has the objects of the scope looked at until end is called. Those that no caller
// has followed before are looked at here, so that what they are like now is not new.
func (s *statuses) follow(of scope) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.followed[of]++
	if s.followed[of] == 1 && s.areKnown() {
		s.begin(of)
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.followed[of]--
		if s.followed[of] == 0 {
			delete(s.followed, of)
		}
		if len(s.followed) == 0 {
			s.snapshot, s.fleet = nil, nil // they may be collected
		}
	}
}

func (s *statuses) begin(of scope) {
	begun, proxies, latest := time.Now(), s.Fleet.Latest(), s.Snapshots.Latest()
	s.version++
	skipped := len(s.followed) > 1
	for o := range of.objects(latest) {
		if _, known := s.of[o.Key]; known {
			skipped = true
			continue
		}
		s.of[o.Key] = objectStatus{content: s.content(latest, proxies, o), changed: s.version}
	}
	s.snapshot, s.fleet = latest, proxies
	if skipped {
		s.snapshot, s.fleet = nil, nil // the next look is at all that is followed
	}
	s.rest = later(s.rest, time.Now().Add(restFactor*time.Since(begun)))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// areKnown reports whether this hub can say anything of statuses.
func (s *statuses) areKnown() bool { return s.Config.Deliveries != nil || s.Config.Findings != nil }

// now is the version of the latest look.
func (s *statuses) now() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// look finds what changed of what is followed; again is when to come back for it where it is too soon.
func (s *statuses) look() (again time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.areKnown() {
		return time.Time{}
	}
	// The fleet comes first: what a stream reports was built from a snapshot that is
	// there by then.
	proxies, of := s.Fleet.Latest(), s.Snapshots.Latest()
	if proxies == s.fleet && of == s.snapshot {
		return time.Time{}
	}
	begun := time.Now()
	if begun.Before(s.rest) {
		return s.rest
	}
	s.version++
	s.snapshot, s.fleet = of, proxies
	for one := range s.followed {
		for o := range one.objects(of) {
			s.compare(o)
		}
	}
	for key := range s.of {
		if _, exists := of.Object(key); !exists {
			delete(s.of, key)
		}
	}
	s.rest = time.Now().Add(restFactor * time.Since(begun))
	return time.Time{}
}

// compare notes how the object is now, once a look.
func (s *statuses) compare(o *federation.Object) {
	before, known := s.of[o.Key]
	if known && before.seen == s.version {
		return
	}
	now := objectStatus{content: s.content(s.snapshot, s.fleet, o), changed: s.version, seen: s.version}
	if known && before.content == now.content {
		now.changed = before.changed
	}
	s.of[o.Key] = now
}

// content represents everything that the status of the object says.
func (s *statuses) content(of *federation.Snapshot, proxies *fleet.Value, o *federation.Object) uint64 {
	var h maphash.Hash
	h.SetSeed(s.seed)
	if s.Config.Deliveries != nil {
		if d, known := s.Config.Deliveries.Delivery(of, proxies, o.Key); known {
			_, _ = fmt.Fprintf(&h, "%d %d %d %d", d.Acked, d.Unanswered, d.Rejected, d.Pending) // a hash never fails
		}
	}
	if s.Config.NotHonoured != nil {
		for _, f := range s.Config.NotHonoured(of, o) {
			_, _ = fmt.Fprintf(&h, "%q%q", f.Field, f.Reason)
		}
	}
	if s.Config.Findings != nil {
		for _, f := range s.Config.Findings(of, proxies, o.Key) {
			_, _ = fmt.Fprintf(&h, "%q%q%q%q%q", f.Code, f.Severity, f.Message, f.Field, f.Related)
		}
	}
	return h.Sum64()
}

// tell adds to a change the objects whose status, and nothing else, changed since
// the state's; it returns up to where they were sent.
func (s *statuses) tell(change *model.Change, p subscriptionState) (upTo uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.statusAt == s.version {
		return s.version
	}
	told := map[federation.ObjectKey]bool{}
	for _, c := range change.ConfigObjects {
		told[federation.ObjectKey{Group: c.Object.Group, Kind: c.Object.Kind, Namespace: c.Object.Namespace, Name: c.Object.Name}] = true
	}
	for key, one := range s.of {
		if one.changed <= p.statusAt || told[key] || !p.hasStatus(key) {
			continue
		}
		if o, exists := p.snapshot.Object(key); exists {
			change.ConfigObjects = append(change.ConfigObjects, model.ConfigObjectChange{
				Action: model.ChangeActionStatus,
				Object: model.NewObjectRef(key, o.Revision),
			})
		}
	}
	return s.version
}
