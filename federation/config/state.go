package config

import (
	"cmp"
	"iter"
	"net/netip"

	iradix "github.com/hashicorp/go-immutable-radix/v2"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/registries/external"
	networking "istio.io/api/networking/v1"
)

const nul = "\x00"

// Options say for whom a State translates.
type Options struct {
	Hub    federation.ClusterID // whose External shard the edits speak of
	Domain string               // ends names of services; empty: federation.DefaultDomain
}

// State is the effective configuration, every object decoded once, as one
// immutable value. A change costs what changed. All methods are safe for
// concurrent use, and what they return is read-only.
type State struct {
	options   Options
	revision  int64
	begun     bool                                // an edit was made
	objects   *iradix.Tree[*held]                 // group, kind, namespace, name
	entries   *iradix.Tree[*external.Reading]     // host, namespace, name
	bindings  *iradix.Tree[*binding]              // host, namespace, name
	shards    *iradix.Tree[*federation.Shard]     // host, namespace
	found     *iradix.Tree[[]federation.Problem]  // what is wrong with a service: host, namespace
	taken     *iradix.Tree[federation.ServiceKey] // allocated address, service
	opinions  *iradix.Tree[federation.Verdict]    // way, object: what each hub found of gateways
	unsettled *iradix.Tree[federation.ServiceKey] // services whose allocation is missing or left over
}

// NewState is a configuration without objects. The first Edit that follows from
// it is full.
func NewState(o Options) *State {
	o.Domain = cmp.Or(o.Domain, federation.DefaultDomain)
	return &State{
		options: o, objects: iradix.New[*held](), entries: iradix.New[*external.Reading](), bindings: iradix.New[*binding](),
		shards: iradix.New[*federation.Shard](), found: iradix.New[[]federation.Problem](),
		taken: iradix.New[federation.ServiceKey](), unsettled: iradix.New[federation.ServiceKey](),
		opinions: iradix.New[federation.Verdict](),
	}
}

// Source is the shard of which the edits speak.
func (s *State) Source() federation.ShardKey {
	return federation.ShardKey{Cluster: s.options.Hub, Provider: federation.External}
}

// Revision is that of the store of record which the state includes.
func (s *State) Revision() int64 { return s.revision }

// Len is the number of objects.
func (s *State) Len() int { return s.objects.Len() }

// Object returns the object of that key as it is stored.
func (s *State) Object(key federation.ObjectKey) (*Object, bool) {
	h, ok := s.objects.Get(objectBytes(key))
	if !ok {
		return nil, false
	}
	return h.object, true
}

// Decoded returns the object of that key as readers of a snapshot see it; false
// also for one that was set aside.
func (s *State) Decoded(key federation.ObjectKey) (*federation.Object, bool) {
	h, ok := s.objects.Get(objectBytes(key))
	if !ok || h.shown == nil {
		return nil, false
	}
	return h.shown, true
}

// Objects yields every object in the order of keys.
func (s *State) Objects() iter.Seq[*Object] { return s.under("") }

// ObjectsOf yields the objects of a kind in the order of keys.
func (s *State) ObjectsOf(kind federation.Kind) iter.Seq[*Object] { return s.under(kindPrefix(kind)) }

func (s *State) under(prefix string) iter.Seq[*Object] {
	return func(yield func(*Object) bool) {
		s.objects.Root().WalkPrefix([]byte(prefix), func(_ []byte, h *held) bool { return !yield(h.object) })
	}
}

// ServiceEntries yields the ServiceEntries that could be decoded, in the order
// of their keys.
func (s *State) ServiceEntries() iter.Seq2[federation.ObjectKey, *networking.ServiceEntry] {
	return decoded[*networking.ServiceEntry](s, ServiceEntryKind)
}

// Gateways yields the Gateways that select a workload with those labels, in the
// order of their keys. One without a selector selects every workload.
func (s *State) Gateways(labels map[string]string) iter.Seq2[federation.ObjectKey, *networking.Gateway] {
	return func(yield func(federation.ObjectKey, *networking.Gateway) bool) {
		for key, g := range decoded[*networking.Gateway](s, gatewayKind) {
			if carries(labels, g.GetSelector()) && !yield(key, g) {
				return
			}
		}
	}
}

func carries(labels, wanted map[string]string) bool {
	for k, v := range wanted {
		if has, ok := labels[k]; !ok || has != v {
			return false
		}
	}
	return true
}

func decoded[T any](s *State, kind federation.Kind) iter.Seq2[federation.ObjectKey, T] {
	return func(yield func(federation.ObjectKey, T) bool) {
		s.objects.Root().WalkPrefix([]byte(kindPrefix(kind)), func(_ []byte, h *held) bool {
			if h.shown == nil {
				return false
			}
			spec, ok := h.shown.Spec.(T)
			return ok && !yield(h.shown.Key, spec)
		})
	}
}

func kindPrefix(k federation.Kind) string { return k.Group + nul + k.Name + nul }

func objectBytes(k federation.ObjectKey) []byte {
	return []byte(kindPrefix(k.Of()) + k.Namespace + nul + k.Name)
}

func serviceBytes(k federation.ServiceKey) []byte {
	return []byte(string(k.Hostname) + nul + k.Namespace)
}

// memberBytes is of an object under a service to which it contributes.
func memberBytes(k federation.ServiceKey, name string) []byte {
	return append(serviceBytes(k), nul+name...)
}

func takenBytes(ip netip.Addr, k federation.ServiceKey) []byte {
	at := ip.As16()
	return append(at[:], serviceBytes(k)...)
}
