package xds

import (
	"cmp"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/envoy"
)

// Sent returns the resources of a type that a stream was sent or accepted, by name.
// It waits neither for the stream nor for a build.
func (s *Server) Sent(stream fleet.Key, typeURL string) []fleet.SentResource {
	kind := envoy.Type(typeURL)
	of := s.toldOf(stream, kind)
	if of == nil {
		return nil
	}
	found := of.shown(kind, causesIn(s.options.Snapshots.Latest()))
	slices.SortFunc(found, func(a, b fleet.SentResource) int { return cmp.Compare(a.Name, b.Name) })
	return found
}

// show publishes what the stream was sent of a type.
func (st *stream) show(of *subscription) {
	st.looking.Lock()
	defer st.looking.Unlock()
	st.told[of.kind] = of.client.slots
}

// toldOf finds what a stream was sent of a type; nil: nothing.
func (s *Server) toldOf(stream fleet.Key, kind envoy.Type) *slots {
	s.mu.Lock()
	defer s.mu.Unlock()
	for st := range s.streams {
		if st.report.ID() == stream.StreamID {
			st.looking.Lock()
			defer st.looking.Unlock()
			return st.told[kind]
		}
	}
	return nil
}

// shown are the slots for who is not the stream's goroutine.
func (s *slots) shown(kind envoy.Type, causes func(*group, string) []federation.ObjectKey) []fleet.SentResource {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []fleet.SentResource
	for name, e := range s.all() {
		if e.sent != nil || e.acked != nil {
			one := fleet.SentResource{Name: name, Sent: e.sent.content(kind), Acked: e.acked.content(kind)}
			if home := cmp.Or(e.sent.madeBy(), e.acked.madeBy()); home != nil {
				one.Causes = func() []federation.ObjectKey { return causes(home, name) }
			}
			found = append(found, one)
		}
	}
	return found
}

// content shows the resource, but nothing of a secret except its version.
func (r *resource) content(kind envoy.Type) fleet.Content {
	if r == nil {
		return fleet.Content{}
	}
	shown := fleet.Content{Version: r.version}
	if kind != envoy.SecretType && !r.late && r.hasBody() {
		shown.Size = r.size()
		shown.JSON = func() ([]byte, error) { return r.redacted(kind) }
	}
	return shown
}

// redacted is the resource as indented JSON without what Envoy holds to be sensitive.
func (r *resource) redacted(kind envoy.Type) ([]byte, error) {
	m, err := r.unsensitive(kind)
	if err != nil {
		return nil, err
	}
	return indented(m), nil
}

// unsensitive is the resource without what Envoy holds to be sensitive.
func (r *resource) unsensitive(kind envoy.Type) (proto.Message, error) {
	m, err := (&anypb.Any{TypeUrl: string(kind), Value: r.value()}).UnmarshalNew()
	if err != nil {
		return nil, fmt.Errorf("reading %s %q: %w", kind, r.name, err)
	}
	if err := redact(m.ProtoReflect()); err != nil {
		return nil, fmt.Errorf("redacting %s %q: %w", kind, r.name, err)
	}
	return m, nil
}
