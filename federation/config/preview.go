package config

import (
	"slices"

	"isthmus.dev/isthmus/federation"
)

// PreviewedState is what changes come to before anybody has made them.
type PreviewedState struct {
	State   *State
	Edit    federation.Edit
	Missing []Change // allocations that they make necessary, made already in the state

	from   *State
	events []Event // those of the missing allocations included, in the order of keys
}

// Preview is Next with the allocations that it makes necessary already made: what
// the mesh will be once they are written, too. It frees the VIPs of services that
// the changes themselves end. Others that look left over may be those of a source
// that only another hub reads.
func (s *State) Preview(changes []Event, revision int64) *PreviewedState {
	d := s.draft()
	d.take(changes, nil)
	after := d.commit(revision)
	f := &PreviewedState{from: s, Missing: after.MissingAllocations(), events: slices.Clone(changes)}
	f.Missing = slices.DeleteFunc(f.Missing, func(c Change) bool { return c.Object == nil && s.isLeftOver(allocatedFor(c.Key)) })
	allotted := make([]Event, len(f.Missing))
	for i, c := range f.Missing {
		old, _ := after.Object(c.Key)
		allotted[i] = Event{Old: old, New: c.Object.Stored(revision)}
		f.Missing[i].Object = allotted[i].New
	}
	d.take(allotted, nil)
	f.State, f.Edit = d.end(revision)
	f.Edit.Receipt = &federation.Receipt{}
	f.events = append(f.events, allotted...)
	slices.SortFunc(f.events, Event.Compare)
	return f
}

// isOf reports whether these very changes of the state were previewed, with the objects
// that are stored now.
func (f *PreviewedState) isOf(s *State, changes []Event, revision int64) bool {
	same := func(a, b Event) bool { return a.New == b.New && a.Key() == b.Key() }
	return f != nil && f.from == s && f.State.revision == max(revision, s.revision) && slices.EqualFunc(f.events, changes, same)
}

// state is nil where nothing was previewed.
func (f *PreviewedState) state() *State {
	if f == nil {
		return nil
	}
	return f.State
}
