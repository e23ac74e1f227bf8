package kubernetes

import "isthmus.dev/isthmus/federation"

// problemSet keeps the problems by the object that has them, and what changed since
// the last edit.
type problemSet struct {
	owned map[string][]federation.Problem
	now   map[string]federation.Problem
	said  map[string]federation.Problem
	dirty map[string]struct{}
}

func newProblemSet() problemSet {
	return problemSet{
		owned: map[string][]federation.Problem{}, now: map[string]federation.Problem{}, said: map[string]federation.Problem{},
		dirty: map[string]struct{}{},
	}
}

// set replaces the owner's problems; none means that it healed or is gone.
func (l *problemSet) set(owner string, problems []federation.Problem) {
	old := l.owned[owner]
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

// edit returns the problems that came, changed or went.
func (l *problemSet) edit() federation.Delta[string, federation.Problem] {
	var d federation.Delta[string, federation.Problem]
	for name := range l.dirty {
		p, ok := l.now[name]
		was, had := l.said[name]
		switch {
		case ok && (!had || p != was):
			if d.Set == nil {
				d.Set = map[string]federation.Problem{}
			}
			d.Set[name], l.said[name] = p, p
		case !ok && had:
			delete(l.said, name)
			d.Gone = append(d.Gone, name)
		}
	}
	clear(l.dirty)
	return d
}
