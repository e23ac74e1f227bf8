package xds

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/envoy"
)

// Standing says how far a proxy is with something.
type Standing string

// The standings, the worst first.
const (
	Rejected    Standing = "REJECTED"    // it refused, and has what it accepted before
	Waiting     Standing = "PENDING"     // something is still to be sent
	Delivered   Standing = "DELIVERED"   // sent, not answered yet
	Accepted    Standing = "ACKED"       // sent and accepted
	Unconcerned Standing = "UNCONCERNED" // nothing of it is for the proxy
)

var standings = []Standing{Rejected, Waiting, Delivered, Accepted, Unconcerned}

// Worse is the one of the two that is further from done.
func Worse(a, b Standing) Standing {
	if slices.Index(standings, a) <= slices.Index(standings, b) {
		return a
	}
	return b
}

// Report is the standing of one stream.
type Report struct {
	Proxy    fleet.Key
	Standing Standing
	Error    string // why it rejected, in its words, cut and escaped
}

// Rollout tells for every connected proxy how far it is with the changes that
// the snapshot of that version brought, and later ones: what it was sent from
// earlier snapshots does not count. A stream that does not answer before the
// context ends is Waiting.
func (s *Server) Rollout(ctx context.Context, version uint64) []Report {
	return s.inspect(ctx, func(st *stream) Report { return st.session.rollout(version) })
}

// Object tells for every connected proxy how far it is with the resources that
// were made from the configuration object, as the latest snapshot has it. A stream
// that has yet to find out what a change of the object means for it is Waiting.
func (s *Server) Object(ctx context.Context, key federation.ObjectKey) []Report {
	o := &objectQuestion{server: s, key: key, latest: s.options.Snapshots.Latest(), readers: map[groupKey][]string{}, changed: map[uint64]bool{}}
	return s.inspect(ctx, o.ask)
}

// objectQuestion is asked of one stream after the other.
type objectQuestion struct {
	server  *Server
	key     federation.ObjectKey
	latest  *federation.Snapshot
	readers map[groupKey][]string // of groups that were asked
	changed map[uint64]bool       // whether the object is another than in that version
}

func (o *objectQuestion) ask(st *stream) Report {
	if o.changedSince(st.session.snapshot) {
		return Report{Standing: Waiting}
	}
	for _, sub := range st.session.subs {
		if len(sub.pending) > 0 && o.changedSince(sub.sync.SnapshotSent) {
			return Report{Standing: Waiting}
		}
	}
	return st.standingOf(o.key, o.readersOf)
}

func (o *objectQuestion) changedSince(version uint64) bool {
	if version >= o.latest.Version() {
		return false
	}
	changed, known := o.changed[version]
	if !known {
		set := o.latest.ChangesSince(version)
		changed = set.All || slices.ContainsFunc(set.Objects, func(c federation.ObjectChange) bool { return c.Key == o.key })
		o.changed[version] = changed
	}
	return changed
}

// readersOf names the resources of the group that were built from the object.
func (o *objectQuestion) readersOf(k groupKey) []string {
	found, known := o.readers[k]
	if !known {
		if g := o.server.group(k); g != nil {
			found = g.readersOf(o.key)
		}
		o.readers[k] = found
	}
	return found
}

// group is the group of that key; nil where nobody uses it.
func (s *Server) group(key groupKey) *sharedGroup {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.groups[key]
}

// readersOf names the resources that were built from the object.
func (g *group) readersOf(key federation.ObjectKey) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	names := map[string]struct{}{}
	for name := range g.index.objects[key] {
		names[resourceOf(name)] = struct{}{}
	}
	return slices.Collect(maps.Keys(names))
}

// question is asked of a stream; its own goroutine answers it.
type question struct {
	ask    func(*stream) Report
	answer chan<- Report
}

// inspect asks every stream that is being served, in the order of their keys.
func (s *Server) inspect(ctx context.Context, ask func(*stream) Report) []Report {
	s.mu.Lock()
	streams := slices.Collect(maps.Keys(s.streams))
	s.mu.Unlock()
	reports := make([]Report, 0, len(streams))
	for _, st := range streams {
		answer := make(chan Report, 1)
		r := Report{Standing: Waiting}
		select {
		case st.asked <- question{ask, answer}:
			r = <-answer
		case <-st.over:
			continue
		case <-ctx.Done():
		}
		r.Proxy = fleet.Key{NodeID: st.node.ID, StreamID: st.report.ID()}
		reports = append(reports, r)
	}
	slices.SortFunc(reports, func(a, b Report) int {
		return cmp.Or(cmp.Compare(a.Proxy.NodeID, b.Proxy.NodeID), cmp.Compare(a.Proxy.StreamID, b.Proxy.StreamID))
	})
	return reports
}

// enlist makes the stream one that can be asked, until the returned function is
// called.
func (s *Server) enlist(st *stream) (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams[st] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.streams, st)
		close(st.over)
	}
}

func (s *session) rollout(version uint64) Report {
	r := Report{Standing: Unconcerned}
	if s.snapshot < version {
		r.Standing = Waiting
	}
	for _, kind := range slices.Sorted(maps.Keys(s.subs)) {
		sub := s.subs[kind]
		if at := sub.standingSince(version); Worse(at, r.Standing) != r.Standing {
			if r.Standing = at; at == Rejected {
				r.Error = sub.sync.LastError
			}
		}
	}
	return r
}

func (s *subscription) standingSince(version uint64) Standing {
	switch {
	case len(s.barred) > 0 && s.refusedAt >= version:
		return Rejected
	case len(s.pending) > 0 || s.reply:
		return Waiting
	case slices.ContainsFunc(s.inflight, func(f *flight) bool { return f.snapshot >= version }):
		return Delivered
	case s.sync.SnapshotSent >= version && s.sync.VersionSent != "":
		return Accepted
	}
	return Unconcerned
}

// standingOf is the stream's standing with resources, named by group.
func (st *stream) standingOf(object federation.ObjectKey, names func(groupKey) []string) Report {
	r := Report{Standing: Unconcerned}
	for kind, keys := range st.held {
		sub := st.session.subs[kind]
		for _, key := range keys {
			for _, name := range names(key) {
				if at := sub.standingWith(name, object); Worse(at, r.Standing) != r.Standing {
					if r.Standing = at; at == Rejected {
						r.Error = sub.sync.LastError
					}
				}
			}
		}
	}
	if r.Standing != Unconcerned && st.refusesSecretOf(object) {
		r.Standing, r.Error = Rejected, st.session.subs[envoy.SecretType].sync.LastError
	}
	return r
}

func (s *subscription) standingWith(name string, object federation.ObjectKey) Standing {
	rejection, barred := s.barred[name]
	_, pending := s.pending[name]
	flies := func(f *flight) bool {
		return slices.ContainsFunc(f.resources, func(r *resource) bool { return r.name == name })
	}
	switch {
	case barred && rejection.blames(object):
		return Rejected
	case !s.wants(name):
		return Unconcerned
	case pending:
		return Waiting
	case slices.ContainsFunc(s.inflight, flies):
		return Delivered
	case s.slots.get(name).sent != nil:
		return Accepted
	}
	return Unconcerned
}
