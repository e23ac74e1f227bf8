package crd

import (
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
)

// take makes what was touched part of what is given, and returns what that changes.
func (s *Source) take() []config.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	events := s.given.Change(func(yield func(federation.ObjectKey, *config.Object) bool) {
		for key := range s.touched {
			object, hidden := s.effective(key)
			s.hide(key, hidden)
			if !yield(key, object) {
				return
			}
		}
	})
	clear(s.touched)
	return events
}

func (s *Source) hide(key federation.ObjectKey, hidden *config.Problem) {
	before, was := s.hidden[key]
	switch {
	case hidden == nil && was:
		delete(s.hidden, key)
	case hidden != nil && before != *hidden:
		s.hidden[key] = *hidden
	default:
		return
	}
	s.stale = true
}
