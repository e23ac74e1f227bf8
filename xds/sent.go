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
// Their causes are those in the snapshot. It waits neither for the stream nor for a build.
func (*Server) Sent(of *federation.Snapshot, proxies *fleet.Value, stream fleet.Key, typeURL string) []fleet.SentResource {
	kind := envoy.Type(typeURL)
	all := deliveredOf(proxies, stream, kind)
	if all == nil {
		return nil
	}
	found := all.shown(kind, causesIn(of))
	slices.SortFunc(found, func(a, b fleet.SentResource) int { return cmp.Compare(a.Name, b.Name) })
	return found
}

// deliveredOf is what a stream was sent of a type, as the fleet has it; nil: nothing.
func deliveredOf(of *fleet.Value, stream fleet.Key, kind envoy.Type) *delivered {
	p, connected := of.Stream(stream)
	if !connected {
		return nil
	}
	all, _ := p.Told(string(kind)).(*delivered) // others than this room make none
	return all
}

// shown are all resources that were sent or accepted.
func (t *delivered) shown(kind envoy.Type, causes func(*group, string) []federation.ObjectKey) []fleet.SentResource {
	var found []fleet.SentResource
	for e := range t.all() {
		of := cmp.Or(e.sent, e.acked)
		if of == nil {
			continue
		}
		one := fleet.SentResource{Name: of.name, Sent: e.sent.content(kind), Acked: e.acked.content(kind)}
		if home := cmp.Or(e.sent.madeBy(), e.acked.madeBy()); home != nil {
			one.Causes = func() []federation.ObjectKey { return causes(home, of.name) }
		}
		found = append(found, one)
	}
	return found
}

// content shows the resource, but nothing of a secret except its version.
func (r *resource) content(kind envoy.Type) fleet.Content {
	if r == nil {
		return fleet.Content{}
	}
	shown := fleet.Content{Version: r.version}
	if !kind.Has(envoy.Confidential) && !r.late && r.hasBody() {
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
