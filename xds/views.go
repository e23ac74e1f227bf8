package xds

import (
	"sync"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
)

// views tells streams when the view of their node may have changed. It follows the
// snapshots once for all streams, as a group does for what it builds: a version
// that changed nothing that a view was derived from costs its stream one look (R61).
type views struct {
	make     func(envoy.Node, *federation.Reader) envoy.View
	mu       sync.Mutex
	snapshot *federation.Snapshot // nil before the first sync
	index    dependents
	deps     map[string]federation.Deps // by the name of the stream
	stale    map[string]bool
}

func newViews(of func(envoy.Node, *federation.Reader) envoy.View) *views {
	return &views{make: of, index: newDependents(), deps: map[string]federation.Deps{}, stale: map[string]bool{}}
}

// changed tells that the view of the stream may be another one in the snapshot
// than in the one that it was noted for.
func (v *views) changed(stream string, s *federation.Snapshot) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.sync(s)
	return v.stale[stream]
}

func (v *views) sync(s *federation.Snapshot) {
	if v.snapshot == nil {
		v.snapshot = s
		return
	}
	if v.snapshot.Version() >= s.Version() {
		return
	}
	changes := s.ChangesSince(v.snapshot.Version())
	v.snapshot = s
	if changes.All {
		for stream := range v.deps {
			v.stale[stream] = true
		}
		return
	}
	v.index.visit(changes, s, func(stream string) { v.stale[stream] = true })
}

// derive makes the view of the stream's node and notes what it was derived from.
func (v *views) derive(stream string, n envoy.Node, s *federation.Snapshot) envoy.View {
	r := s.Read()
	view := v.make(n, r)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.sync(s)
	v.index.replace(stream, v.deps[stream], r.Deps())
	v.deps[stream] = r.Deps()
	delete(v.stale, stream)
	if s.Version() < v.snapshot.Version() { // other streams are ahead: what changed since was not looked at for this one
		v.stale[stream] = true
	}
	return view
}

// forget drops the stream.
func (v *views) forget(stream string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.index.replace(stream, v.deps[stream], federation.Deps{})
	delete(v.deps, stream)
	delete(v.stale, stream)
}
