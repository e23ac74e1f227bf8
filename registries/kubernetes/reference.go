package kubernetes

import "isthmus.dev/isthmus/federation"

// references is an index from a name to the objects that refer to it.
type references[K, V comparable] map[K]map[V]struct{}

func (r references[K, V]) add(k K, v V) {
	set := r[k]
	if set == nil {
		set = make(map[V]struct{}, 1)
		r[k] = set
	}
	set[v] = struct{}{}
}

func (r references[K, V]) remove(k K, v V) {
	delete(r[k], v)
	if len(r[k]) == 0 {
		delete(r, k)
	}
}

// refer notes what the slice refers to.
func (m *model) refer(s *slice) {
	m.slicesOf.add(s.owner(), s.k)
	for i := range s.endpoints {
		e := &s.endpoints[i]
		if e.pod != "" {
			m.podSlices.add(key{Namespace: s.k.Namespace, Name: e.pod}, s.k)
			continue
		}
		m.bareSlices.add(e.ip, s.k)
		if e.node != "" {
			m.nodeSlices.add(e.node, s.k)
		}
	}
}

// unrefer forgets what refer noted.
func (m *model) unrefer(s *slice) {
	m.slicesOf.remove(s.owner(), s.k)
	for i := range s.endpoints {
		e := &s.endpoints[i]
		m.podSlices.remove(key{Namespace: s.k.Namespace, Name: e.pod}, s.k)
		m.bareSlices.remove(e.ip, s.k)
		m.nodeSlices.remove(e.node, s.k)
	}
}

// ledger keeps the problems by the object that has them, and what changed since
// the last edit.
type ledger struct {
	owned map[string][]federation.Problem
	now   map[string]federation.Problem
	said  map[string]federation.Problem
	dirty map[string]struct{}
}

func newLedger() ledger {
	return ledger{owned: map[string][]federation.Problem{}, now: map[string]federation.Problem{}, said: map[string]federation.Problem{}, dirty: map[string]struct{}{}}
}

// set replaces the owner's problems; none means that it healed or is gone.
func (l *ledger) set(owner string, problems []federation.Problem) {
	old := l.owned[owner]
	if len(old) == 0 && len(problems) == 0 {
		return
	}
	for _, p := range old {
		delete(l.now, problemName(p))
		l.dirty[problemName(p)] = struct{}{}
	}
	delete(l.owned, owner)
	if len(problems) == 0 {
		return
	}
	l.owned[owner] = problems
	for _, p := range problems {
		l.now[problemName(p)] = p
		l.dirty[problemName(p)] = struct{}{}
	}
}
