package config

import (
	"slices"
	"time"

	"isthmus.dev/isthmus/federation"
)

// SourceStatus is how a source is doing.
type SourceStatus struct {
	Name     string
	Synced   bool      // gave its first, full update
	Heard    time.Time // when it last gave an update; zero: never
	Revision int64     // of the source, after that update
	Trouble  []Problem // what is wrong with it or some of what it holds; what it gave stays
}

// View is the effective configuration and where it comes from, as one immutable
// value. All methods are safe for concurrent use.
type View struct {
	State      *State
	Sources    []SourceStatus // in order of precedence
	overlay    overlay
	since      time.Time // when the phase of the registry began
	superseded chan struct{}
}

// Superseded is closed when there is a later view.
func (v *View) Superseded() <-chan struct{} { return v.superseded }

// Revision is that of the store of record, the first source, which the view
// includes.
func (v *View) Revision() int64 { return v.State.Revision() }

// Synced reports whether every source gave its first update.
func (v *View) Synced() bool {
	for _, s := range v.Sources {
		if !s.Synced {
			return false
		}
	}
	return true
}

// SyncedFor reports whether every source that gives the kind gave its first update.
func (v *View) SyncedFor(kind federation.Kind) bool {
	for i, s := range v.Sources {
		if !s.Synced && v.overlay.sources[i].knows(kind) {
			return false
		}
	}
	return true
}

// SourceOf returns the name of the source whose object of that key counts, and
// the names of those whose objects it hides; "" where there is none.
func (v *View) SourceOf(key federation.ObjectKey) (counts string, hidden []string) {
	for i, at := range v.overlay.holders(key) {
		if i == 0 {
			counts = v.overlay.sources[at].name
		} else {
			hidden = append(hidden, v.overlay.sources[at].name)
		}
	}
	return counts, hidden
}

// Behind returns the object of that key that counts once the store of record has
// none, or nil.
func (v *View) Behind(key federation.ObjectKey) *Object {
	return overlay{sources: v.overlay.sources[1:]}.first(key)
}

// HiddenBehind returns the problem of other sources' objects of that key while the store of
// record has one; nil: no other source has one.
func (v *View) HiddenBehind(key federation.ObjectKey) *Problem {
	others := slices.DeleteFunc(v.overlay.holders(key), func(source int) bool { return source == 0 })
	if len(others) == 0 {
		return nil
	}
	return v.overlay.hiding(key, 0, others)
}

// SourcesKnowing returns the names of the sources that are asked for the kind
// (seed 32).
func (v *View) SourcesKnowing(kind federation.Kind) []string {
	var names []string
	for _, l := range v.overlay.sources {
		if l.knows(kind) {
			names = append(names, l.name)
		}
	}
	return names
}

// why is what is wrong with the source as a whole, as the end of a sentence.
func (s SourceStatus) why() string {
	for _, p := range s.Trouble {
		if p.Object == "" {
			return ": " + p.Message
		}
	}
	return ""
}

// status is how the External registry as a whole is doing.
func (v *View) status() federation.RegistryStatus {
	for _, s := range v.Sources {
		if !s.Synced {
			return federation.RegistryStatus{Phase: federation.Syncing, Message: "waiting for the configuration of " + s.Name + s.why()}
		}
	}
	for _, s := range v.Sources {
		if why := s.why(); why != "" {
			return federation.RegistryStatus{Phase: federation.Stale, Message: s.Name + why}
		}
	}
	return federation.RegistryStatus{Phase: federation.Ready}
}
