package xds

import (
	"slices"
	"sync"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/envoy/destinationrule"
	"isthmus.dev/isthmus/xds/envoy/transport"
)

// Object is the progress of the proxies with the resources that were made from the
// configuration object of the snapshot.
func (s *Server) Object(of *federation.Snapshot, proxies *fleet.Value, key federation.ObjectKey) fleet.Affected {
	question := fleet.Question{Object: key, Changed: s.changed.of(of, key)}
	o, exists := of.Object(key)
	if exists {
		question.Secrets, question.Built = secretsFor(o), s.builtForServices(of, o)
	}
	r := of.Read()
	for _, g := range s.builtFrom.OfObject(key) {
		if exists && !envoy.Concerns(o, g.facet, r) {
			continue // it was read, and is for others
		}
		if numbers := g.numbersOf(key, s.names); len(numbers) > 0 {
			question.Built = append(question.Built, fleet.Built{Group: g.id, Numbers: numbers})
		}
	}
	return proxies.Affected(question)
}

// secretsFor are the secrets to which resources refer because of the object.
func secretsFor(o *federation.Object) []string {
	rule, ok := destinationrule.Spec(o)
	if !ok {
		return transport.SecretNames(o)
	}
	var names []string
	for _, credential := range destinationrule.Credentials(rule) {
		for _, authorities := range []bool{false, true} {
			names = append(names, transport.CredentialSecret{Credential: credential, Authorities: authorities}.Name())
		}
	}
	return names
}

// numbersOf are the resources that exist and were built from the object.
func (g *group) numbersOf(key federation.ObjectKey, names *nameTable) []uint32 {
	return names.held(g.absent.existing(g.index.OfObject(key)))
}

// absences are the resources that were asked for and do not exist, or cannot be built.
// They have a lock of their own, so that a query for an object's status does not wait
// for a build.
type absences struct {
	mu    sync.Mutex
	names map[string]struct{}
}

// set notes whether the resource does not exist.
func (a *absences) set(name string, absent bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.names, name)
	if absent {
		a.names[name] = struct{}{}
	}
}

// existing are the resources that exist of those that the names of an index mean,
// each once.
func (a *absences) existing(names []string) []string {
	for i, name := range names {
		names[i] = resourceOf(name)
	}
	slices.Sort(names)
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { _, absent := a.names[name]; return absent })
}

// objectChanges tells which objects changed between snapshots, once for all that
// ask about the same ones.
type objectChanges struct {
	mu     sync.Mutex
	latest *federation.Snapshot
	since  map[uint64]map[federation.ObjectKey]struct{} // nil: all
}

// of returns a function that reports whether the object differs from the one in the snapshot of a
// version.
func (c *objectChanges) of(latest *federation.Snapshot, key federation.ObjectKey) func(uint64) bool {
	return func(version uint64) bool {
		if version >= latest.Version() {
			return false
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.latest != latest {
			c.latest, c.since = latest, map[uint64]map[federation.ObjectKey]struct{}{}
		}
		changed, known := c.since[version]
		if !known {
			changed = changedObjects(latest.ChangesSince(version))
			c.since[version] = changed
		}
		_, is := changed[key]
		return is || changed == nil
	}
}

// changedObjects are those of the change set; nil: all.
func changedObjects(set federation.ChangeSet) map[federation.ObjectKey]struct{} {
	if set.All {
		return nil
	}
	changed := make(map[federation.ObjectKey]struct{}, len(set.Objects))
	for _, c := range set.Objects {
		changed[c.Key] = struct{}{}
	}
	return changed
}
