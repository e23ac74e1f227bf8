package xds

import (
	"slices"
	"sync"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/derive"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/envoy"
)

// group holds the resources of one type for one facet, built once and shared by
// all streams of that facet. It follows the snapshots when a stream asks it to
// and builds a resource when the first stream wants it.
type group struct {
	*recipe
	*hooks
	id fleet.Group // 0: no stream uses it

	mu         sync.Mutex
	snapshot   *federation.Snapshot // nil before the first sync
	names      *nameSet
	fixedDeps  federation.Deps     // what the fixed names were made from
	subscribed subscribedResources // those of names only
	index      *derive.Index[string]
	absent     absences
	parts      partCache
	log        changeLog
	blame      *blame
	faults     *faults
}

// subscribedResource is a resource that a client subscribed to.
type subscribedResource struct {
	resource *resource // nil: does not exist
	deps     federation.Deps
	absent   bool // resource is nil, and the index knows it
	dirty    bool
	err      error // why resource is not what the snapshot asks for
	reasons  []envoy.Reason
}

// subscribedResources are those of a group, with the number of dirty ones among them.
type subscribedResources struct {
	byName map[string]*subscribedResource
	dirty  int
}

// soil notes that the resource is to be built again.
func (s *subscribedResources) soil(c *subscribedResource) {
	if !c.dirty {
		c.dirty = true
		s.dirty++
	}
}

// clean notes that it was.
func (s *subscribedResources) clean(c *subscribedResource) {
	if c.dirty {
		c.dirty = false
		s.dirty--
	}
}

func (s *subscribedResources) remove(name string) {
	s.clean(s.byName[name])
	delete(s.byName, name)
}

func newGroup(kind envoy.Type, facet envoy.Facet, make builder) *group {
	of := &recipe{kind, facet, make}
	to := &hooks{failed: func(envoy.Type, string, error) {}, built: func() {}, reasoned: func(_, _ []envoy.Reason) {}, moved: func() {}}
	g := &group{
		recipe: of, hooks: to, subscribed: subscribedResources{byName: map[string]*subscribedResource{}}, index: derive.NewIndex[string](),
		absent: absences{names: map[string]struct{}{}}, parts: partCache{}, blame: newBlame(),
		faults: &faults{to, kind, map[string][]envoy.Reason{}},
	}
	g.names = newNameSet(of, g.faults)
	return g
}

// sync brings the group up to the snapshot, never back. Its cost is that of the
// changes. It returns the version that the group is at.
func (g *group) sync(s *federation.Snapshot) uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.snapshot != nil && g.snapshot.Version() >= s.Version() {
		return g.snapshot.Version()
	}
	before := g.snapshot
	g.snapshot = s
	changes := federation.ChangeSet{All: true}
	if before != nil {
		changes = s.ChangesSince(before.Version())
	}
	if changes.All {
		g.resync()
		return s.Version()
	}
	g.move(g.names.follow(changes, before, s))
	for _, name := range g.index.Affected(changes, s) {
		g.touch(name)
	}
	return s.Version()
}

// resync reads everything again.
func (g *group) resync() {
	g.faults.clear()
	r := g.snapshot.Read()
	g.names.reset(g.snapshot, r)
	g.noteFixed(r.Deps())
	for name, c := range g.subscribed.byName {
		g.subscribed.soil(c)
		if !g.names.has(name) {
			g.forget(name)
		}
	}
	for _, all := range g.parts {
		all.markStale()
	}
	g.log.reset(g.snapshot.Version())
}

// move notes that the names came or went, or have other contributions.
func (g *group) move(names []string) {
	for _, name := range names {
		if !g.names.has(name) {
			g.forget(name)
		}
		g.touch(name)
	}
}

// refix asks again for the names that no service contributes.
func (g *group) refix() {
	r := g.snapshot.Read()
	moved := g.names.refix(g.snapshot, r)
	g.noteFixed(r.Deps())
	g.move(moved)
}

func (g *group) noteFixed(read federation.Deps) {
	g.index.Replace(fixedNames, g.fixedDeps, read)
	g.fixedDeps = read
}

// fixedNames represents the set of fixed names in the index; no resource has
// that name.
const fixedNames = "\x00"

func (g *group) touch(name string) {
	if name == fixedNames {
		g.refix()
		return
	}
	name, _ = g.parts.touch(name)
	if c := g.subscribed.byName[name]; c != nil {
		if c.dirty {
			return // in the log, and no stream looked since
		}
		g.subscribed.soil(c)
	}
	g.log.add(g.snapshot.Version(), name)
}

// close withdraws what the group reported, and what it built from objects.
func (g *group) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.subscribed.byName {
		g.reasoned(c.reasons, nil)
		c.reasons = nil
	}
	g.faults.clear()
	g.index.Close()
	g.names.close()
	g.moved()
}

func (g *group) forget(name string) {
	if c := g.subscribed.byName[name]; c != nil {
		g.index.Replace(name, c.deps, federation.Deps{})
		g.parts.forget(name, g.index)
		g.reasoned(c.reasons, nil)
		g.faults.set(name, nil)
		if c.absent {
			g.absent.set(name, false)
		}
		g.subscribed.remove(name)
		g.blame.forget(name)
		g.moved()
	}
}

// get returns the resource as of the group's snapshot, or the last good one
// where it cannot be built; nil where the name does not exist.
func (g *group) get(name string) *resource {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.subscribed.byName[name]
	if c == nil && !g.names.has(name) {
		return nil
	}
	if c == nil || c.dirty {
		g.take(name, g.build(name))
		c = g.subscribed.byName[name]
	}
	return c.resource
}

// list is part of source.
func (g *group) list() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.names.sorted()
}

// since returns the names that may have changed after the version, each once or
// more, and the version that the group is at; ok is false where the version is
// too old, and every name may have changed.
func (g *group) since(version uint64) (changed []logEntry, now uint64, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	changed, ok = g.log.since(version)
	return changed, g.snapshot.Version(), ok
}

// maxLog bounds the changes that a group remembers; a stream that is behind the
// oldest looks at all of its names.
const maxLog = 8192

// changeLog says at which version names changed, oldest first.
type changeLog struct {
	entries   []logEntry
	compacted uint64 // changes up to this version may be forgotten
}

type logEntry struct {
	version uint64
	name    string
}

func (l *changeLog) reset(version uint64) { l.entries, l.compacted = nil, version }

func (l *changeLog) add(version uint64, name string) {
	if len(l.entries) >= 2*maxLog {
		l.compacted = l.entries[maxLog-1].version
		l.entries = slices.Clone(l.entries[maxLog:])
	}
	l.entries = append(l.entries, logEntry{version, name})
}

// since returns a part of the log, which is never written again.
func (l *changeLog) since(version uint64) ([]logEntry, bool) {
	if version < l.compacted {
		return nil, false
	}
	at, _ := slices.BinarySearchFunc(l.entries, version+1, func(e logEntry, v uint64) int {
		if e.version < v {
			return -1
		}
		return 1
	})
	return l.entries[at:], true
}
