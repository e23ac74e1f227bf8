package xds

import (
	"fmt"
	"maps"
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
	if n := len(r.names) + len(r.unsubscribe); n > 2*limits.Names || len(r.names) > limits.Names {
		return status.Errorf(codes.ResourceExhausted, "request for %s names %d resources: the limit is %d", r.kind, n, limits.Names)
	}
	if n := len(r.initial); n > limits.Names {
		return status.Errorf(codes.ResourceExhausted, "request for %s names %d resources that the client has (initial_resource_versions): the limit is %d", r.kind, n, limits.Names)
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
	return status.Errorf(codes.ResourceExhausted, "request for %s has a resource name or version of more than %d bytes: %s…", kind, limits.NameBytes, printable(name[:min(len(name), 40)]))
}

// read takes up a SotW request; false: it was stale and nothing was done.
func (s *subscription) readSotW(r request, now time.Time) bool {
	first := !s.started
	s.started = true
	if !first && r.nonce != s.lastNonce {
		return false
	}
	names := make(map[string]struct{}, len(r.names))
	for _, name := range r.names {
		names[name] = struct{}{}
	}
	_, all := names[everything]
	delete(names, everything)
	s.named = s.named || len(r.names) > 0
	all = s.rooted() && (all || !s.named)
	changed := s.subscribe(names, all, now)
	switch {
	case first:
		s.reply = s.wildcard
		clear(s.rewarm) // all of it goes anyway
	case changed:
		s.reply = s.reply || s.whole()
	}
	return true
}

// subscribe makes the names, and with all the wildcard, what is wanted.
func (s *subscription) subscribe(names map[string]struct{}, all bool, now time.Time) (changed bool) {
	added := want{since: now, urgent: true, resend: true}
	before := s.explicit
	s.explicit = names
	for name := range names {
		if _, had := before[name]; !had {
			s.look(name, added)
			changed = true
		}
	}
	wildcard := s.wildcard
	s.wildcard = all
	for name := range before {
		if _, stays := names[name]; !stays {
			changed = true
			s.leave(name, now)
		}
	}
	if wildcard != all {
		changed = true
		s.lookAtAll(want{since: now, urgent: true})
	}
	return changed
}

// leave takes up that the client no longer names the resource.
func (s *subscription) leave(name string, now time.Time) {
	switch {
	case s.wildcard: // still wanted: the client is told how it stands
		s.look(name, want{since: now, urgent: true, resend: true, tell: true})
	case s.whole():
		s.look(name, want{since: now, urgent: true})
	default:
		s.drop(name)
	}
}

// again takes up a SotW request that repeats an answered one: the client wants
// once more what its parents, sent since, made it forget.
func (s *subscription) again(now time.Time) {
	for name := range s.rewarm {
		if s.wants(name) {
			s.look(name, want{since: now, urgent: true, resend: true})
		}
	}
	clear(s.rewarm)
}

// readDelta takes up a delta request, whatever its nonce. Of a name that is
// both subscribed to and unsubscribed from, the subscription holds.
func (s *subscription) readDelta(r request, now time.Time) {
	first := !s.started
	s.started = true
	if !first && len(r.names) == 0 && len(r.unsubscribe) == 0 {
		return // only an answer: must cost the same however much is subscribed to
	}
	if first {
		for name, version := range r.initial {
			c := claimed(name, version)
			s.entries[name] = entry{sent: c, acked: c}
			s.live += c.weight()
		}
	}
	names := maps.Clone(s.explicit)
	all := s.wildcard
	s.leaveAll(r.unsubscribe, names, &all)
	for _, name := range r.names {
		s.named = true
		if name == everything {
			all = s.rooted()
			continue
		}
		names[name] = struct{}{}
	}
	if first && s.rooted() && !s.named && len(r.unsubscribe) == 0 {
		all = true
	}
	s.follow(r, names, all, now)
	if first {
		clear(s.rewarm)
		s.reply = s.wildcard
		for name := range r.initial {
			s.look(name, want{since: now, urgent: true})
		}
	}
}

func (s *subscription) leaveAll(unsubscribe []string, names map[string]struct{}, all *bool) {
	for _, name := range unsubscribe {
		if name == everything {
			*all = false
		}
		delete(names, name) // of a name that was never subscribed to: nothing
	}
}

// follow makes names and all what is wanted, and sends what was asked for.
func (s *subscription) follow(r request, names map[string]struct{}, all bool, now time.Time) {
	s.subscribe(names, all, now)
	for _, name := range r.names {
		if name == everything {
			continue
		}
		has := s.entries[name].sent // without a body: the client says that it has it
		_, rewarm := s.rewarm[name]
		s.pending[name] = want{since: now, urgent: true, resend: has == nil || has.hasBody() || rewarm, tell: true}
		s.urgent = true
	}
}

// tooMany tells that the stream wants more names than it may.
func (s *subscription) tooMany(limits Limits) error {
	if len(s.explicit) > limits.Names {
		return status.Error(codes.ResourceExhausted, fmt.Sprintf("the stream subscribes to more than %d resources of %s", limits.Names, s.kind))
	}
	return nil
}
