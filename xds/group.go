package xds

import (
	"maps"
	"slices"
	"strings"
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
	contributes func(envoy.Type, envoy.Facet, *federation.Service, *federation.Snapshot) []string
	// byEndpoint tells that what a service contributes depends on its endpoints.
	byEndpoint func(envoy.Type, envoy.Facet, *federation.Service) bool
	speaks     func(*federation.Object) []string
	build      func(envoy.Type, string, envoy.Facet, *federation.Reader) (proto.Message, []envoy.Reason, error)
	validate   func(proto.Message) error
	// assemble is build and validate for routes, out of parts.
	assemble func(string, envoy.Facet, *federation.Reader, envoy.Parts) (*envoy.Assembled, []envoy.Reason, error)
	causes   func(envoy.Type, string, envoy.Facet, *federation.Reader, []string) map[string][]federation.ObjectKey
}

var envoyBuilder = builder{envoy.ViewOf, envoy.Fixed, envoy.Contributes, envoy.ContributesByEndpoint, envoy.Speaks, envoy.Build, check.Resource, envoy.AssembleRoutes, envoy.Causes}

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
	speakers      map[federation.ObjectKey][]string // hostnames to whose services an object contributes
	names         map[string]int                    // how many contributions give the name
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
		contributions: map[federation.ServiceKey][]string{}, names: map[string]int{}, speakers: map[federation.ObjectKey][]string{},
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
	var changes federation.ChangeSet
	if g.snapshot == nil {
		changes.All = true
	} else {
		changes = s.ChangesSince(g.snapshot.Version())
	}
	g.snapshot = s
	if changes.All {
		g.resync()
		return s.Version()
	}
	for _, change := range changes.Services {
		switch svc, exists := s.Service(change.Key); {
		case change.Reasons&federation.ReasonSpec != 0:
			g.respecify(change.Key)
		case exists && change.Reasons&federation.ReasonEndpoints != 0 && g.make.byEndpoint(g.kind, g.facet, svc):
			g.contributeEndpoints(svc)
		}
	}
	for _, change := range changes.Objects {
		g.hear(change.Key)
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
	contributed, spoken := g.contributions, g.speakers
	g.names, g.contributions, g.speakers = map[string]int{}, map[federation.ServiceKey][]string{}, map[federation.ObjectKey][]string{}
	g.fixed = nil
	g.refix()
	for o := range g.snapshot.Objects() {
		g.listen(o.Key, g.spokenOf(o, spoken[o.Key]))
	}
	for svc := range g.snapshot.Services() {
		names := g.contributionOf(svc, contributed[svc.Key])
		if len(names) > 0 {
			g.contributions[svc.Key] = names
		}
		for _, name := range names {
			g.names[name]++
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

// respecify takes up that the spec of a service changed. Services of one hostname
// compete for it, so that the others contribute anew, too.
func (g *group) respecify(key federation.ServiceKey) {
	svc, _ := g.snapshot.Service(key)
	g.contribute(key, svc)
	for _, other := range g.snapshot.ByHostname(key.Hostname) {
		if other.Key != key {
			g.contribute(other.Key, other)
		}
	}
}

// contribute replaces what the service contributes; nil is gone.
func (g *group) contribute(key federation.ServiceKey, svc *federation.Service) {
	before, now := g.replaceContribution(key, svc)
	g.exchange(before, now)
}

// contributeEndpoints is contribute after a change of endpoints alone: names that
// stay are built again only if something that they read has changed.
func (g *group) contributeEndpoints(svc *federation.Service) {
	before, now := g.replaceContribution(svc.Key, svc)
	g.exchange(without(before, now), without(now, before))
}

func (g *group) replaceContribution(key federation.ServiceKey, svc *federation.Service) (before, now []string) {
	if svc == nil {
		g.fault(faultOfService(key), nil)
	} else {
		now = g.contributionOf(svc, g.contributions[key])
	}
	before = g.contributions[key]
	if delete(g.contributions, key); len(now) > 0 {
		g.contributions[key] = now
	}
	return before, now
}

// without returns the names that are not among the others; both are sorted.
func without(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		_, found := slices.BinarySearch(others, name)
		return found
	})
}

// exchange replaces names that a contribution gave by those that it gives now.
func (g *group) exchange(before, now []string) {
	for _, name := range now {
		if g.names[name]++; g.names[name] == 1 {
			g.numberName(name)
		}
	}
	for _, name := range before {
		if g.names[name]--; g.names[name] == 0 {
			delete(g.names, name)
			g.releaseNames(name)
			g.forget(name)
		}
	}
	for _, name := range slices.Concat(before, now) {
		g.touch(name)
	}
}

// refix asks anew for the names that no service contributes.
func (g *group) refix() {
	r := g.snapshot.Read()
	now := g.fixedOf(r)
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

// hear takes up an object that changed: services of which it spoke or speaks
// contribute anew.
func (g *group) hear(key federation.ObjectKey) {
	var now []string
	if o, ok := g.snapshot.Object(key); ok {
		now = g.spokenOf(o, g.speakers[key])
	} else {
		g.fault(faultOfObject(key), nil)
	}
	hosts := slices.Concat(g.speakers[key], now)
	g.listen(key, now)
	for _, svc := range servicesOf(g.snapshot, hosts) {
		g.contribute(svc.Key, svc)
	}
}

func (g *group) listen(key federation.ObjectKey, hosts []string) {
	if delete(g.speakers, key); len(hosts) > 0 {
		g.speakers[key] = hosts
	}
}

// servicesOf finds the services of the hostnames; only wildcards are looked for
// among all.
func servicesOf(s *federation.Snapshot, hosts []string) []*federation.Service {
	var found []*federation.Service
	slices.Sort(hosts)
	for _, host := range slices.Compact(hosts) {
		suffix, wild := strings.CutPrefix(host, "*")
		if !wild {
			found = append(found, s.ByHostname(federation.Hostname(host))...)
			continue
		}
		for svc := range s.Services() {
			if strings.HasSuffix(string(svc.Key.Hostname), suffix) {
				found = append(found, svc)
			}
		}
	}
	return found
}

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
