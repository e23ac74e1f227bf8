package writeback

import (
	"iter"
	"maps"
	"slices"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/gatewayapi"
	"isthmus.dev/isthmus/federation/config/writeback/wanted"
	"isthmus.dev/isthmus/federation/derive"
)

// dependents finds the objects whose status may change after a change of the mesh: from what each was
// computed from.
type dependents struct {
	at     uint64        // version of the snapshot up to which changes were looked at
	state  *config.State // up to which changes were looked at; nil: none were
	hubs   int           // that ran beside this one
	index  *derive.Index[ref]
	inputs map[ref]inputs
	open   map[ref]struct{} // that proxies have not accepted, or refuse
	served map[ref]struct{} // whose status says whether any proxy has something of them
}

// inputs are what the status of an object was computed from.
type inputs struct {
	read     federation.Deps
	followed []func()               // functions that stop following the Secrets
	counted  []federation.ObjectKey // that proxies were asked about
	open     bool                   // a proxy lacks or refuses some of them
	idle     bool                   // no proxy has accepted them
}

func newDependents() *dependents {
	return &dependents{
		index: derive.NewIndex[ref](), inputs: map[ref]inputs{}, open: map[ref]struct{}{}, served: map[ref]struct{}{},
	}
}

// note notes what the status of an object was computed from.
func (f *dependents) note(at ref, key federation.ObjectKey, now inputs) {
	before := f.inputs[at]
	f.index.Replace(at, before.read, now.read)
	f.inputs[at] = now
	before.release()
	mark(f.open, at, now.open)
	mark(f.served, at, len(now.counted) > 0 && gatewayapi.Translates(key.Of()))
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
	delete(f.served, at)
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
	recounted := f.recount(l, w.parts.Proxies, news.Moved)
	stored := f.stored(l.view.State)
	f.at = l.snapshot.Version()
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
	add(w.dirty, slices.Values(recounted))
	add(w.dirty, slices.Values(stored))
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
}

// stored finds the objects of whose keys another object counts than before. A snapshot may say the same of both.
func (f *dependents) stored(now *config.State) (found []ref) {
	if f.state != nil {
		for key := range config.Differing(f.state, now) {
			found = append(found, f.index.OfObject(key)...)
		}
	}
	f.state = now
	return found
}

// recount finds the objects of which proxies had something and have nothing any more, or the other way
// round. If another hub came or went, those of which proxies have nothing say something else, too.
func (f *dependents) recount(l round, proxies Proxies, moved bool) (found []ref) {
	hubs := l.mesh.OtherHubs != f.hubs
	f.hubs = l.mesh.OtherHubs
	if !moved && !hubs {
		return nil
	}
	for at := range f.served {
		before := f.inputs[at]
		d, _ := proxies.Delivered(l.snapshot, before.counted...)
		if idle := d.Accepted == 0; idle != before.idle || idle && hubs {
			found = append(found, at)
		}
	}
	return found
}

func add(to map[ref]struct{}, all iter.Seq[ref]) {
	for at := range all {
		to[at] = struct{}{}
	}
}
