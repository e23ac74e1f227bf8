package graph

import (
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/graph/model"
)

// restFactor bounds what following statuses costs: after a look at all objects there
// is no other for that many times as long as it took.
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
}

// objectStatus stands for the status of an object.
type objectStatus struct {
	content uint64
	changed uint64 // the look that found it so
	seen    uint64 // the latest look that found it
}

func newStatuses(o Options) *statuses {
	return &statuses{Options: o, seed: maphash.MakeSeed(), of: map[federation.ObjectKey]objectStatus{}}
}

// now is the version of the latest look.
func (s *statuses) now() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// look finds what changed; again is when to come back for it where it is too soon.
func (s *statuses) look() (again time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Config.Deliveries == nil && s.Config.Findings == nil {
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
	s.version, s.snapshot, s.fleet = s.version+1, of, proxies
	for o := range of.Objects() {
		if o.Key.Of().Internal() {
			continue
		}
		before, known := s.of[o.Key]
		now := objectStatus{content: s.content(o), changed: s.version, seen: s.version}
		if known && before.content == now.content {
			now.changed = before.changed
		}
		s.of[o.Key] = now
	}
	for key, one := range s.of {
		if one.seen != s.version {
			delete(s.of, key)
		}
	}
	s.rest = time.Now().Add(restFactor * time.Since(begun))
	return time.Time{}
}

// content stands for everything that the status of the object says.
func (s *statuses) content(o *federation.Object) uint64 {
	var h maphash.Hash
	h.SetSeed(s.seed)
	if s.Config.Deliveries != nil {
		if d, known := s.Config.Deliveries.Delivery(s.fleet, o.Key); known {
			_, _ = fmt.Fprintf(&h, "%d %d %d %d", d.Acked, d.Unanswered, d.Rejected, d.Pending) // a hash never fails
		}
	}
	if s.Config.NotHonoured != nil {
		for _, f := range s.Config.NotHonoured(s.snapshot, o) {
			_, _ = fmt.Fprintf(&h, "%q%q", f.Field, f.Reason)
		}
	}
	if s.Config.Findings != nil {
		for _, f := range s.Config.Findings(s.snapshot, s.fleet, o.Key) {
			_, _ = fmt.Fprintf(&h, "%q%q%q%q%q", f.Code, f.Severity, f.Message, f.Field, f.Related)
		}
	}
	return h.Sum64()
}

// tell adds to a change the objects whose status, and nothing else, changed since
// the picture's; it returns up to where they were told.
func (s *statuses) tell(change *model.Change, p picture) (upTo uint64) {
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
			change.ConfigObjects = append(change.ConfigObjects, model.ConfigObjectChange{Action: model.ChangeActionStatus, Object: model.NewObjectRef(key, o.Revision)})
		}
	}
	return s.version
}
