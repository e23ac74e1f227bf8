package kubernetes

import (
	"iter"
	"maps"
	"slices"
)

// references is an index from a name to the objects that refer to it.
type references[K, V comparable] map[K]set[V]

func (r references[K, V]) add(k K, v V) {
	s := r[k]
	s.add(v)
	r[k] = s
}

func (r references[K, V]) remove(k K, v V) {
	s, ok := r[k]
	if !ok {
		return
	}
	s.remove(v)
	if s.empty() {
		delete(r, k)
		return
	}
	r[k] = s
}

// set is small while it holds few, as most do.
type set[V comparable] struct {
	few  []V
	many map[V]struct{}
}

const mostFew = 16

func (s *set[V]) add(v V) {
	switch {
	case s.many != nil:
		s.many[v] = struct{}{}
	case slices.Contains(s.few, v):
	case len(s.few) < mostFew:
		s.few = append(s.few, v)
	default:
		s.many = make(map[V]struct{}, 2*mostFew)
		for _, old := range s.few {
			s.many[old] = struct{}{}
		}
		s.many[v] = struct{}{}
		s.few = nil
	}
}

func (s *set[V]) remove(v V) {
	delete(s.many, v)
	if i := slices.Index(s.few, v); i >= 0 {
		s.few = slices.Delete(s.few, i, i+1)
	}
}

func (s set[V]) empty() bool { return len(s.few)+len(s.many) == 0 }

func (s set[V]) all() iter.Seq[V] {
	if s.many != nil {
		return maps.Keys(s.many)
	}
	return slices.Values(s.few)
}

// refersAs reports whether both refer to the same things, as after a change of
// health.
func (s *slice) refersAs(o *slice) bool {
	return s.service == o.service && slices.EqualFunc(s.endpoints, o.endpoints, func(a, b sliceEndpoint) bool {
		return a.ip == b.ip && a.pod == b.pod && a.node == b.node
	})
}
