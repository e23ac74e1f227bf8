package config

import (
	"cmp"
	"iter"
	"log/slog"
	"net/netip"
	"slices"
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/external"
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/internal/btree"
	networking "istio.io/api/networking/v1"
)

const nul = "\x00"

// Options say for whom a State translates.
type Options struct {
	Hub    federation.ClusterID // whose External shard the edits change
	Domain string               // ends names of services; empty: federation.DefaultDomain
	Logger *slog.Logger         // nil: slog's default
	Meter  Meter                // counts the changes that an Aggregate makes; nil: nobody does
	// Poison is called before an object is decoded; tests have it panic. nil: no test.
	Poison func(federation.ObjectKey)
	// PoisonService is the same for a service that objects define.
	PoisonService func(federation.ServiceKey)
}

// Meter counts changes of objects. Its methods must not block.
type Meter interface {
	Changed(kind federation.Kind, event string) // add, update or delete, as istiod calls them
}

// State is the effective configuration, every object decoded once, as one
// immutable value. A change costs what changed. All methods are safe for
// concurrent use, and what they return is read-only.
type State struct {
	options     Options
	revision    int64
	begun       bool                             // an edit was made
	objects     btree.Map[*held]                 // group, kind, namespace, name, cluster
	entries     btree.Map[*external.Reading]     // host, namespace, name
	bindings    btree.Map[*kind.Binding]         // host, namespace, name
	shards      btree.Map[*federation.Shard]     // host, namespace
	found       btree.Map[[]federation.Problem]  // what is wrong with a service: host, namespace
	taken       btree.Map[struct{}]              // allocated address, service
	chosen      btree.Map[struct{}]              // address of the same range that an entry names, service, entry
	opinions    btree.Map[federation.Verdict]    // way, object: what each hub found of gateways
	unallocated btree.Map[federation.ServiceKey] // services whose allocation is missing or left over
}

// NewState is a configuration without objects. The first Edit that follows from
// it is full.
func NewState(o Options) *State {
	o.Domain = cmp.Or(o.Domain, federation.DefaultDomain)
	return &State{
		options: o,
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
	h, ok := s.objects.Get(objectSortKey(key))
	if !ok {
		return nil, false
	}
	return h.object, true
}

// Decoded returns the object of that key as readers of a snapshot see it, always
// with its spec; false also for one that was set aside.
func (s *State) Decoded(key federation.ObjectKey) (*federation.Object, bool) {
	h, ok := s.objects.Get(objectSortKey(key))
	if !ok || h.shown == nil {
		return nil, false
	}
	return h.withSpec(), true
}

// Objects yields every object in the order of keys.
func (s *State) Objects() iter.Seq[*Object] { return s.under("") }

// ObjectsOf yields the objects of a kind in the order of keys.
func (s *State) ObjectsOf(kind federation.Kind) iter.Seq[*Object] { return s.under(kindPrefix(kind)) }

func (s *State) under(prefix string) iter.Seq[*Object] {
	return func(yield func(*Object) bool) {
		s.objects.WalkPrefix(prefix, func(_ string, h *held) bool { return !yield(h.object) })
	}
}

// Differing yields the keys of the objects that the states do not have alike as they are stored. A snapshot
// may have the same of both. The cost is that of what changed between them.
func Differing(before, after *State) iter.Seq[federation.ObjectKey] {
	var keys []federation.ObjectKey
	btree.Diff(before.objects, after.objects, func(_ string, a, b **held) {
		switch {
		case a == nil:
			keys = append(keys, (*b).object.Key)
		case b == nil || *a != *b:
			keys = append(keys, (*a).object.Key)
		}
	})
	return slices.Values(keys)
}

// ServiceEntries yields the ServiceEntries that could be decoded, in the order
// of their keys.
func (s *State) ServiceEntries() iter.Seq2[federation.ObjectKey, *networking.ServiceEntry] {
	return decoded[*networking.ServiceEntry](s, federation.ServiceEntryKind)
}

// Gateways yields the Gateways that select a workload with those labels, in the
// order of their keys. One without a selector selects every workload.
func (s *State) Gateways(labels map[string]string) iter.Seq2[federation.ObjectKey, *networking.Gateway] {
	return func(yield func(federation.ObjectKey, *networking.Gateway) bool) {
		for key, g := range decoded[*networking.Gateway](s, federation.GatewayKind) {
			if federation.HasLabels(labels, g.GetSelector()) && !yield(key, g) {
				return
			}
		}
	}
}

func decoded[T any](s *State, kind federation.Kind) iter.Seq2[federation.ObjectKey, T] {
	return func(yield func(federation.ObjectKey, T) bool) {
		s.objects.WalkPrefix(kindPrefix(kind), func(_ string, h *held) bool {
			if h.shown == nil {
				return false
			}
			spec, ok := h.withSpec().Spec.(T)
			return ok && !yield(h.shown.Key, spec)
		})
	}
}

func kindPrefix(k federation.Kind) string { return k.Group + nul + k.Name + nul }

func objectSortKey(k federation.ObjectKey) string {
	if k.Cluster == "" {
		return k.Group + nul + k.Kind + nul + k.Namespace + nul + k.Name
	}
	return clusterObjectsPrefix(k) + string(k.Cluster)
}

// clusterObjectsPrefix is what the sort keys of the objects of that name which are for the proxies of
// one cluster alone begin with.
func clusterObjectsPrefix(k federation.ObjectKey) string { return objectSortKey(k.Everywhere()) + nul }

func serviceSortKey(k federation.ServiceKey) string {
	return string(k.Hostname) + nul + k.Namespace
}

// memberSortKey is of an object under a service to which it contributes.
func memberSortKey(k federation.ServiceKey, name string) string {
	return string(k.Hostname) + nul + k.Namespace + nul + name
}

func takenPrefix(ip netip.Addr) string {
	at := ip.As16()
	return string(at[:])
}

func takenSortKey(ip netip.Addr, k federation.ServiceKey) string {
	return takenPrefix(ip) + serviceSortKey(k)
}

// serviceTaking is the service of a key that takenSortKey made.
func serviceTaking(sortKey string) federation.ServiceKey {
	host, namespace, _ := strings.Cut(sortKey[len(netip.Addr{}.As16()):], nul)
	return federation.ServiceKey{Hostname: federation.Hostname(host), Namespace: namespace}
}
