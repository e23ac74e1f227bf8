package config

import (
	"bytes"
	"iter"
	"slices"

	"isthmus.dev/isthmus/federation"
)

// Given is what a source gave. The zero value has given nothing.
type Given struct {
	Objects  map[federation.ObjectKey]*Object
	Revision int64 // of the last change
}

// Change has the source give what it read, nil for an object that does not exist, and returns what that changes, in the order of keys.
// All of it is one revision. An object whose manifest is as before keeps its revision. The first time is a revision even if
// nothing was read.
func (g *Given) Change(read iter.Seq2[federation.ObjectKey, *Object]) (events []Event) {
	if g.Objects == nil {
		g.Objects = map[federation.ObjectKey]*Object{}
	}
	next := g.Revision + 1
	for key, now := range read {
		old := g.Objects[key]
		switch {
		case now == nil && old == nil, now != nil && old != nil && bytes.Equal(now.Manifest, old.Manifest):
			continue
		case now == nil:
			delete(g.Objects, key)
		default:
			given := *now
			given.Key, given.Revision = key, next
			now = &given
			g.Objects[key] = now
		}
		events = append(events, Event{Old: old, New: now})
	}
	if len(events) > 0 || g.Revision == 0 {
		g.Revision = next
	}
	slices.SortFunc(events, Event.Compare)
	return events
}

// Everything is all that is given, as a first update has it.
func (g *Given) Everything() []Event {
	events := make([]Event, 0, len(g.Objects))
	for _, o := range g.Objects {
		events = append(events, Event{New: o})
	}
	slices.SortFunc(events, Event.Compare)
	return events
}
