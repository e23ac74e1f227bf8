package writeback

import (
	"iter"
	"maps"
	"slices"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/gatewayapi"
	"isthmus.dev/isthmus/federation/config/writeback/wanted"
	"isthmus.dev/isthmus/federation/derive"
)

// dependents finds the objects whose status may change after a change of the mesh: from what each was
// computed from.
type dependents struct {
	at     uint64 // version of the snapshot up to which changes were looked at
	hubs   int    // that ran beside this one
	index  *derive.Index[ref]
	inputs map[ref]inputs
	open   map[ref]struct{} // that proxies have not accepted, or refuse
	idle   map[ref]struct{} // Gateways of which no proxy has anything
}

// inputs are what the status of an object was computed from.
type inputs struct {
	read       federation.Deps
	followed   []func() // functions that stop following the Secrets
	open, idle bool
}

func newDependents() *dependents {
	return &dependents{
		index: derive.NewIndex[ref](), inputs: map[ref]inputs{}, open: map[ref]struct{}{}, idle: map[ref]struct{}{},
	}
}

// note notes what the status of an object was computed from.
func (f *dependents) note(at ref, key federation.ObjectKey, now inputs) {
	before := f.inputs[at]
	now.idle = now.idle && gatewayapi.Translates(key.Of())
	f.index.Replace(at, before.read, now.read)
	f.inputs[at] = now
	before.release()
	mark(f.open, at, now.open)
	mark(f.idle, at, now.idle)
}

// release stops following the Secrets of the object.
func (n inputs) release() {
	for _, done := range n.followed {
		done()
	}
}

func mark(set map[ref]struct{}, at ref, is bool) {
	delete(set, at)
	if is {
		set[at] = struct{}{}
	}
}

// forget is note for an object whose status is not written any more.
func (f *dependents) forget(at ref) {
	before, known := f.inputs[at]
	if !known {
		return
	}
	f.index.Replace(at, before.read, federation.Deps{})
	before.release()
	delete(f.inputs, at)
	delete(f.open, at)
	delete(f.idle, at)
}

// end releases the Secrets of all objects, and returns what takes its place.
func (f *dependents) end() *dependents {
	for _, n := range f.inputs {
		n.release()
	}
	return newDependents()
}

// touch has the objects looked at whose status may be another one than when it was computed. Its
// cost is that of what changed.
func (t *turn) touch() {
	w, l, f := t.w, t.look, t.w.follow
	changes, news := l.snapshot.ChangesSince(f.at), w.parts.Proxies.News()
	hubs := l.mesh.OtherHubs
	news.Members, f.hubs, f.at = news.Members || hubs != f.hubs, hubs, l.snapshot.Version()
	if changes.All || news.All {
		w.all()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	add(w.dirty, slices.Values(f.index.Affected(changes, l.snapshot)))
	for _, key := range w.translated {
		add(w.dirty, slices.Values(f.index.OfObject(key)))
	}
	w.translated = nil
	f.told(news, w.dirty)
	for _, id := range changes.Clusters {
		if !l.attached(id) {
			w.touchAll(id)
		}
	}
}

// told adds the objects that the news are about.
func (f *dependents) told(news wanted.News, to map[ref]struct{}) {
	for _, key := range news.Objects {
		add(to, slices.Values(f.index.OfObject(key)))
	}
	for _, key := range news.Services {
		add(to, slices.Values(f.index.OfService(key)))
	}
	if news.Moved {
		add(to, maps.Keys(f.open))
	}
	if news.Members {
		add(to, maps.Keys(f.idle))
	}
}

func add(to map[ref]struct{}, all iter.Seq[ref]) {
	for at := range all {
		to[at] = struct{}{}
	}
}
