package crd

import (
	"bytes"
	"slices"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
)

// take makes what was touched part of what is given, and returns what that changes.
func (s *Source) take() []config.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.revision + 1
	var events []config.Event
	for key := range s.touched {
		object, hidden := s.effective(key)
		s.hide(key, hidden)
		old := s.given[key]
		switch {
		case object == nil && old == nil, object != nil && old != nil && bytes.Equal(object.Manifest, old.Manifest):
			continue
		case object == nil:
			delete(s.given, key)
		default:
			given := *object
			given.Key, given.Revision = key, next
			object = &given
			s.given[key] = object
		}
		events = append(events, config.Event{Old: old, New: object})
	}
	clear(s.touched)
	if len(events) > 0 || s.revision == 0 {
		s.revision = next
	}
	slices.SortFunc(events, config.Event.Compare)
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

// everything is all that is given, as a first update has it.
func (s *Source) everything() []config.Event {
	events := make([]config.Event, 0, len(s.given))
	for _, object := range s.given {
		events = append(events, config.Event{New: object})
	}
	slices.SortFunc(events, config.Event.Compare)
	return events
}
