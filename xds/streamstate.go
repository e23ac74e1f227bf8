package xds

import (
	"strconv"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/envoy"
)

// streamState is all types of one stream. It is for one goroutine and reads no
// clock: who drives it says what time it is.
type streamState struct {
	delta    bool
	timing   timing
	latest   func() *federation.Snapshot
	open     func(envoy.Type) []source // nil: no such type
	reopen   func(envoy.Type) []source // nil: the sources are still the right ones
	count    func(Event, envoy.Type)
	answered func(envoy.Type, time.Duration)
	nacked   func(envoy.Type, *sentResponse, string) // nil: not called
	prefix   string                                  // of nonces: other streams have others
	sent     uint64                                  // responses
	snapshot uint64                                  // version that was last collected
	// moved reports whether the sources may be others in the snapshot than in those before;
	// nil: they never are.
	moved func(*federation.Snapshot) bool

	now     time.Time
	subs    map[envoy.Type]*subscription
	needs   needs               // of the names that are being decided on
	shared  *fallbacks          // with other streams
	names   *nameTable          // the same
	account *account            // of the caller; nil: it has no limits
	warming map[string]struct{} // endpoints of the clusters that were sent before anybody asked for endpoints
}

func (s *streamState) nonce() string {
	s.sent++
	return s.prefix + strconv.FormatUint(s.sent, 36)
}

// handle handles a request. asked: it did more than answer a response, or
// nothing at all.
func (s *streamState) handle(r request, now time.Time) (sub *subscription, asked bool) {
	sub = s.subs[r.kind]
	if sub == nil {
		sources := s.open(r.kind)
		if sources == nil {
			s.count(UnknownType, "")
			return nil, true
		}
		sub = newSubscription(r.kind, s.delta, s.names, s.account, s.shared)
		sub.setSources(sources)
		s.subs[r.kind] = sub
		if r.kind.Has(envoy.Assigned) {
			for name := range s.warming {
				sub.client.slots.rewarm(name)
			}
			s.warming = nil
		}
		sub.sync.State, sub.sync.Since = fleet.Synced, now // nothing is on its way
		sub.collect(s.latest(), now)
	}
	sub.changed = true
	answered, refusing := s.answer(sub, r, now), len(sub.nacks.barred) > 0
	if s.delta {
		sub.readDelta(r, now)
	} else if !s.readSotW(sub, r, answered == nil, now) && answered == nil {
		s.count(StaleRequest, sub.kind)
	}
	if refusing {
		sub.forgive(now)
	}
	return sub, answered == nil
}

// readSotW handles a SotW request; false: it was stale and nothing was done.
func (s *streamState) readSotW(sub *subscription, r request, asked bool, now time.Time) bool {
	repeats, before := sub.started && asked, sub.queue.size()
	read := sub.readSotW(r, now)
	if read && repeats && sub.queue.size() == before {
		sub.again(now)
	}
	return read
}

func (s *streamState) answer(sub *subscription, r request, now time.Time) *sentResponse {
	if r.nonce == "" {
		return nil
	}
	if r.refused {
		f := sub.refuse(r.nonce, r.errorText, now)
		if f != nil {
			s.count(Nacked, sub.kind)
			if s.nacked != nil {
				s.nacked(sub.kind, f, r.errorText)
			}
		}
		return f
	}
	f := sub.accept(r.nonce, now)
	if f != nil {
		s.count(Acked, sub.kind)
		s.answered(sub.kind, now.Sub(f.sent))
	}
	return f
}

// collect notes what changed up to the snapshot. Clusters come last: what
// refers to them must not be newer than they are.
func (s *streamState) collect(snapshot *federation.Snapshot, now time.Time) {
	if snapshot.Version() == s.snapshot {
		return
	}
	s.snapshot = snapshot.Version()
	if s.moved != nil && s.moved(snapshot) {
		s.redirect(now)
	}
	for i := len(servedTypes) - 1; i >= 0; i-- {
		if sub := s.subs[servedTypes[i]]; sub != nil {
			sub.collect(snapshot, now)
		}
	}
}

// close gives back the names that the stream holds.
func (s *streamState) close() {
	for _, sub := range s.subs {
		sub.client.close()
	}
}

// renew notes which secrets and roots changed, whatever the snapshot.
func (s *streamState) renew(now time.Time) {
	for _, kind := range renewedTypes {
		if sub := s.subs[kind]; sub != nil {
			sub.collect(s.latest(), now)
		}
	}
}

// redirect has every type read from the sources that are right now.
func (s *streamState) redirect(now time.Time) {
	for kind, sub := range s.subs {
		if sources := s.reopen(kind); sources != nil {
			sub.redirect(sources, now)
		}
	}
}

// refresh brings the clusters up to the latest snapshot.
func (s *streamState) refresh() {
	if latest := s.latest(); latest.Version() != s.snapshot {
		s.subs[envoy.ClusterType].collect(latest, s.now)
	}
}

// next returns the next response, or when to look again at the latest; a zero
// time is not before something happens.
func (s *streamState) next(now time.Time) (*response, time.Time) {
	s.now = now
	var wake time.Time
	for _, kind := range servedTypes {
		sub := s.subs[kind]
		if sub == nil {
			continue
		}
		r, at := s.deliver(sub, now)
		if r != nil {
			return r, time.Time{}
		}
		wake = earliest(wake, at)
	}
	return nil, wake
}
