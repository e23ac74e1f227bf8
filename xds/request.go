package xds

import (
	"fmt"
	"slices"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"isthmus.dev/isthmus/xds/envoy"
)

// request is a request of either variant.
type request struct {
	kind        envoy.Type
	nonce       string
	refused     bool
	errorText   string
	names       []string // SotW: all that are wanted; delta: to subscribe to
	unsubscribe []string // delta only, as is initial
	initial     map[string]string
}

func sotwRequest(r *discoveryv3.DiscoveryRequest) request {
	return request{
		kind: envoy.Type(r.GetTypeUrl()), nonce: r.GetResponseNonce(), names: r.GetResourceNames(),
		refused: r.GetErrorDetail() != nil, errorText: r.GetErrorDetail().GetMessage(),
	}
}

func deltaRequest(r *discoveryv3.DeltaDiscoveryRequest) request {
	return request{
		kind: envoy.Type(r.GetTypeUrl()), nonce: r.GetResponseNonce(), names: r.GetResourceNamesSubscribe(),
		unsubscribe: r.GetResourceNamesUnsubscribe(), initial: r.GetInitialResourceVersions(),
		refused: r.GetErrorDetail() != nil, errorText: r.GetErrorDetail().GetMessage(),
	}
}

// check holds the request against the limits of what one stream may ask for.
func (r request) check(limits Limits) error {
	if n := len(r.kind); n > limits.NameBytes {
		return status.Errorf(codes.ResourceExhausted, "request for a type whose URL has %d bytes: the limit is %d", n, limits.NameBytes)
	}
	if n := len(r.names) + len(r.unsubscribe); n > 2*limits.Names || len(r.names) > limits.Names {
		return status.Errorf(codes.ResourceExhausted, "request for %s names %d resources: the limit is %d", r.kind, n, limits.Names)
	}
	if n := len(r.initial); n > limits.Names {
		return status.Errorf(codes.ResourceExhausted,
			"request for %s names %d resources that the client has (initial_resource_versions): the limit is %d", r.kind, n, limits.Names)
	}
	for _, list := range [][]string{r.names, r.unsubscribe} {
		for _, name := range list {
			if len(name) > limits.NameBytes {
				return tooLong(r.kind, name, limits)
			}
		}
	}
	for name, version := range r.initial {
		if len(name) > limits.NameBytes || len(version) > limits.NameBytes {
			return tooLong(r.kind, name, limits)
		}
	}
	return nil
}

func tooLong(kind envoy.Type, name string, limits Limits) error {
	return status.Errorf(codes.ResourceExhausted, "request for %s has a resource name or version of more than %d bytes: %s…", kind,
		limits.NameBytes, printable(name[:min(len(name), 40)]))
}

// read applies a SotW request; false: it was stale and nothing was done.
func (s *subscription) readSotW(r request, now time.Time) bool {
	first := !s.started
	s.started = true
	if !first && r.nonce != s.responses.lastNonce {
		return false
	}
	names, all := withoutWildcard(r.names)
	s.named = s.named || len(r.names) > 0
	all = s.kind.Has(envoy.Rooted) && (all || !s.named)
	changed := s.subscribe(names, without(s.client.slots, names), all, now)
	switch {
	case first:
		s.reply = s.wildcard
		s.client.slots.forgetAllRewarm() // all of it goes anyway
	case changed:
		s.reply = s.reply || s.whole()
	}
	return true
}

// withoutWildcard returns the names but the wildcard, and whether it was there.
func withoutWildcard(names []string) (rest []string, all bool) {
	if !slices.Contains(names, everything) {
		return names, false
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == everything }), true
}

// subscribe adds names to what is wanted and takes others from it; with all the
// wildcard is wanted, too.
func (s *subscription) subscribe(names, gone []string, all bool, now time.Time) (changed bool) {
	for _, name := range gone {
		s.client.slots.unsubscribe(name)
	}
	s.queue.expect(len(names))
	for _, name := range names {
		if kept, added := s.client.slots.subscribe(name); added {
			s.queue.enqueue(kept, trigger{since: now, urgent: true, resend: true})
			changed = true
		}
		if s.client.slots.excess != nil {
			return changed // the stream ends
		}
	}
	wildcard := s.wildcard
	s.wildcard = all
	for _, name := range gone {
		changed = true
		s.leave(name, now)
	}
	if wildcard != all {
		changed = true
		s.enqueueAll(trigger{since: now, urgent: true})
	}
	return changed
}

// leave notes that the client no longer names the resource.
func (s *subscription) leave(name string, now time.Time) {
	switch {
	case s.wildcard: // still wanted: the client gets its state
		s.queue.enqueue(name, trigger{since: now, urgent: true, resend: true, tell: true})
	case s.whole():
		s.queue.enqueue(name, trigger{since: now, urgent: true})
	default:
		s.drop(name)
	}
}

// again handles a SotW request that repeats an answered one: the client wants
// once more what its parents, sent since, made it forget.
func (s *subscription) again(now time.Time) {
	for name := range s.client.slots.allRewarmed() {
		if s.includes(name) {
			s.queue.enqueue(name, trigger{since: now, urgent: true, resend: true})
		}
	}
	s.client.slots.forgetAllRewarm()
}

// readDelta handles a delta request, whatever its nonce. Of a name that is
// both subscribed to and unsubscribed from, the subscription holds.
func (s *subscription) readDelta(r request, now time.Time) {
	first := !s.started
	s.started = true
	if !first && len(r.names) == 0 && len(r.unsubscribe) == 0 {
		return // only an answer: must cost the same however much is subscribed to
	}
	if first {
		s.client.claim(r.initial)
	}
	names, wildcard := withoutWildcard(r.names)
	gone, noWildcard := leaving(s.client.slots, r.unsubscribe, names)
	all := s.wildcard && !noWildcard
	s.named = s.named || len(r.names) > 0
	if wildcard {
		all = s.kind.Has(envoy.Rooted)
	}
	if first && s.kind.Has(envoy.Rooted) && !s.named && len(r.unsubscribe) == 0 {
		all = true
	}
	s.subscribe(names, gone, all, now)
	s.ask(names, now)
	if first {
		s.client.slots.forgetAllRewarm()
		s.reply = s.wildcard
		for name := range r.initial {
			s.queue.enqueue(s.client.slots.name(name), trigger{since: now, urgent: true})
		}
	}
}

// leaving are the names that the request ends the subscription to, each once, and
// whether it ends that to the wildcard. Of a name that was never subscribed to:
// nothing.
func leaving(of *slots, unsubscribe, names []string) (gone []string, wildcard bool) {
	if len(unsubscribe) == 0 {
		return nil, false
	}
	subscribed := make(map[string]bool, len(names))
	for _, name := range names {
		subscribed[name] = true
	}
	gone, wildcard = withoutWildcard(unsubscribe)
	gone = slices.DeleteFunc(slices.Clone(gone), func(name string) bool { return subscribed[name] || !of.isNamed(name) })
	slices.Sort(gone)
	return slices.Compact(gone), wildcard
}

// ask sends what was asked for.
func (s *subscription) ask(names []string, now time.Time) {
	for _, name := range names {
		kept, has, rewarmed := s.client.slots.asked(name) // has no body: the client says that it has it
		s.queue.answer(kept, trigger{since: now, urgent: true, resend: has == nil || has.hasBody() || rewarmed, tell: true})
	}
}

// tooMany fails if the stream subscribes to more names than it may.
func (s *subscription) tooMany(limits Limits) error {
	if s.client.slots.named > limits.Names {
		return status.Error(codes.ResourceExhausted,
			fmt.Sprintf("the stream subscribes to more than %d resources of %s, the limit xds.maxNamesPerType", limits.Names, s.kind))
	}
	return nil
}
