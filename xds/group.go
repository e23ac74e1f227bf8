package xds

import (
	"maps"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/derive"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/envoy/check"
)

// builder makes resources; xds/envoy in the product.
type builder struct {
	view        func(envoy.Node, *federation.Reader) envoy.View
	fixed       func(envoy.Type, envoy.Facet, *federation.Reader) []string
	contributes func(envoy.Type, envoy.Facet, *federation.Service, *federation.Reader) []string
	build       func(envoy.Type, string, envoy.Facet, *federation.Reader) (proto.Message, []envoy.Reason, error)
	validate    func(proto.Message) error
	// assemble is build and validate for routes, out of parts.
	assemble func(string, envoy.Facet, *federation.Reader, envoy.Parts) (*envoy.Assembled, []envoy.Reason, error)
	causes   func(envoy.Type, string, envoy.Facet, *federation.Reader, []string) map[string][]federation.ObjectKey
}

var envoyBuilder = builder{envoy.ViewOf, envoy.Fixed, envoy.Contributes, envoy.Build, check.Resource, envoy.AssembleRoutes, envoy.Causes}

// group holds the resources of one type for one facet, built once and shared by
// all streams of that facet. It follows the snapshots when a stream asks it to
// and builds a resource when the first stream wants it.
type group struct {
	id       fleet.Group // 0: no stream uses it
	table    *nameTable  // has all of the names; nil: nobody asks for their numbers
	kind     envoy.Type
	facet    envoy.Facet
	make     builder
	failed   func(t envoy.Type, name string, err error) // a resource could not be built; must not block
	reasoned func(before, now []envoy.Reason)           // a resource has other reasons; must not block
	built    func()                                     // one was built; must not block

	mu            sync.Mutex
	snapshot      *federation.Snapshot // nil before the first sync
	contributions map[federation.ServiceKey][]string
	fixed         []string // contributed by no service
	lastFixed     []string // as computed last
	fixedDeps     federation.Deps
	offers        *derive.ByHost // finds whose contributions change
	names         map[string]int // how many contributions give the name
	cells         map[string]*cell
	index         *derive.Index[string]
	absent        absences
	parts         partShelf
	log           changeLog
	blame         *blame
	faults        map[string][]envoy.Reason // of what the hub cannot compute
}

// cell is a resource that somebody asked for.
type cell struct {
	resource *resource // nil: does not exist
	deps     federation.Deps
	absent   bool // resource is nil, and the index knows it
	dirty    bool
	err      error // why resource is not what the snapshot asks for
	reasons  []envoy.Reason
}

func newGroup(kind envoy.Type, facet envoy.Facet, make builder) *group {
	return &group{
		kind: kind, facet: facet, make: make, failed: func(envoy.Type, string, error) {}, built: func() {}, reasoned: func(_, _ []envoy.Reason) {},
		contributions: map[federation.ServiceKey][]string{}, names: map[string]int{}, offers: derive.NewByHost(),
		cells: map[string]*cell{}, index: derive.NewIndex[string](nil), absent: absences{names: map[string]struct{}{}}, parts: partShelf{}, blame: newBlame(), faults: map[string][]envoy.Reason{},
	}
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
	for _, host := range g.contributing(changes, before) {
		g.contribute(host, before)
	}
	for _, name := range g.index.Affected(changes, s) {
		g.touch(name)
	}
	return s.Version()
}

// resync takes everything anew.
func (g *group) resync() {
	defer g.renumber(g.names)
	for of := range g.faults {
		g.fault(of, nil)
	}
	contributed := g.contributions
	g.names, g.contributions, g.offers = map[string]int{}, map[federation.ServiceKey][]string{}, derive.NewByHost()
	g.fixed = nil
	g.refix()
	last := federation.Hostname("")
	for svc := range g.snapshot.Services() {
		if svc.Key.Hostname == last {
			continue
		}
		last = svc.Key.Hostname
		for key, names := range g.contributionsOf(last, contributed) {
			g.contributions[key] = names
			for _, name := range names {
				g.names[name]++
			}
		}
	}
	for name, c := range g.cells {
		if c.dirty = true; g.names[name] == 0 {
			g.forget(name)
		}
	}
	for _, all := range g.parts {
		all.spoil()
	}
	g.log.reset(g.snapshot.Version())
}

// contributing are the hostnames whose services may contribute other names after the
// changes, each once.
func (g *group) contributing(c federation.ChangeSet, before *federation.Snapshot) []federation.Hostname {
	hosts := g.offers.Affected(c, before, g.snapshot)
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// contributionsOf asks the services of the hostname anew what they contribute; only those
// that contribute anything are in it.
func (g *group) contributionsOf(host federation.Hostname, before map[federation.ServiceKey][]string) map[federation.ServiceKey][]string {
	var now map[federation.ServiceKey][]string
	r := g.snapshot.Read()
	for _, svc := range g.snapshot.ByHostname(host) {
		if names := g.contributionOf(svc, before[svc.Key], r); len(names) > 0 {
			if now == nil {
				now = map[federation.ServiceKey][]string{}
			}
			now[svc.Key] = names
		}
	}
	g.offers.Note(host, g.snapshot, r.Deps())
	return now
}

// contribute replaces what the services of the hostname contribute. Names that stay are
// built again only if something that they read has changed.
func (g *group) contribute(host federation.Hostname, before *federation.Snapshot) {
	contributed := g.contributionsOf(host, g.contributions)
	for _, svc := range before.ByHostname(host) {
		if _, stays := g.snapshot.Service(svc.Key); !stays {
			g.fault(faultOfService(svc.Key), nil)
			g.replaceContribution(svc.Key, nil)
		}
	}
	for _, svc := range g.snapshot.ByHostname(host) {
		g.replaceContribution(svc.Key, contributed[svc.Key])
	}
}

func (g *group) replaceContribution(key federation.ServiceKey, now []string) {
	before := g.contributions[key]
	if delete(g.contributions, key); len(now) > 0 {
		g.contributions[key] = now
	}
	g.exchange(before, now)
}

// without returns the names that are not among the others; both are sorted.
func without(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		_, found := slices.BinarySearch(others, name)
		return found
	})
}

// exchange replaces names that a contribution gave by those that it gives now; both are
// sorted.
func (g *group) exchange(before, now []string) {
	come, gone := without(now, before), without(before, now)
	for _, name := range come {
		if g.names[name]++; g.names[name] == 1 {
			g.numberName(name)
		}
	}
	for _, name := range gone {
		if g.names[name]--; g.names[name] == 0 {
			delete(g.names, name)
			g.releaseNames(name)
			g.forget(name)
		}
	}
	for _, name := range slices.Concat(gone, come) {
		g.touch(name)
	}
}

// refix asks anew for the names that no service contributes.
func (g *group) refix() {
	r := g.snapshot.Read()
	now := slices.Sorted(slices.Values(g.fixedOf(r)))
	deps := r.Deps()
	g.index.Replace(fixedNames, g.fixedDeps, deps)
	g.fixedDeps = deps
	before := g.fixed
	g.fixed = now
	g.exchange(before, now)
}

// fixedNames stands in the index for the set of fixed names; no resource has
// that name.
const fixedNames = "\x00"

func (g *group) touch(name string) {
	if name == fixedNames {
		g.refix()
		return
	}
	name, _ = g.parts.touch(name)
	if c := g.cells[name]; c != nil {
		if c.dirty {
			return // in the log, and nobody looked since
		}
		c.dirty = true
	}
	g.log.add(g.snapshot.Version(), name)
}

// close takes back what the group said of objects.
func (g *group) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.cells {
		g.reasoned(c.reasons, nil)
		c.reasons = nil
	}
	for of := range g.faults {
		g.fault(of, nil)
	}
	g.index.Close()
	g.releaseNames(slices.Collect(maps.Keys(g.names))...)
	g.table = nil
}

// numberName gives the name a number, which it keeps for as long as it exists.
func (g *group) numberName(name string) {
	if g.table != nil {
		g.table.holdResource(name)
	}
}

func (g *group) releaseNames(names ...string) {
	if g.table != nil {
		g.table.releaseResources(names)
	}
}

// renumber takes up that the names are others than before; those that stay keep
// their numbers.
func (g *group) renumber(before map[string]int) {
	for name := range g.names {
		g.numberName(name)
	}
	g.releaseNames(slices.Collect(maps.Keys(before))...)
}

func (g *group) forget(name string) {
	if c := g.cells[name]; c != nil {
		g.index.Replace(name, c.deps, federation.Deps{})
		g.parts.forget(name, g.index)
		g.reasoned(c.reasons, nil)
		g.fault(name, nil)
		if c.absent {
			g.absent.set(name, false)
		}
		delete(g.cells, name)
		g.blame.forget(name)
	}
}

// get returns the resource as of the group's snapshot, or the last good one
// where it cannot be built; nil where the name does not exist.
func (g *group) get(name string) *resource {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.names[name] == 0 {
		return nil
	}
	if c := g.cells[name]; c == nil || c.dirty {
		g.take(name, g.build(name))
	}
	return g.cells[name].resource
}

// list returns every name that may exist, in no order.
func (g *group) list() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Collect(maps.Keys(g.names))
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
	entries []logEntry
	horizon uint64 // changes up to this version may be forgotten
}

type logEntry struct {
	version uint64
	name    string
}

func (l *changeLog) reset(version uint64) { l.entries, l.horizon = nil, version }

func (l *changeLog) add(version uint64, name string) {
	if len(l.entries) >= 2*maxLog {
		l.horizon = l.entries[maxLog-1].version
		l.entries = slices.Clone(l.entries[maxLog:])
	}
	l.entries = append(l.entries, logEntry{version, name})
}

// since returns a part of the log, which is never written again.
func (l *changeLog) since(version uint64) ([]logEntry, bool) {
	if version < l.horizon {
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
