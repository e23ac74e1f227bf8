package federation

import (
	"maps"
	"slices"
)

// A registry may give a service further names (Shard.Aliases). A name that all
// registries give it is another name of the service. A name that only some of them
// give must not lead to the others: it is a service of its own, which has the shards
// of those registries. So web.service.dc1.consul leads to the instances in dc1 where
// dc2 has web too. A service that a registry has under the name itself comes first.

// namesIn are the other names that the shard gives the service of that key.
func (s *Shard) namesIn(key ServiceKey) []ServiceKey {
	if s == nil {
		return nil
	}
	var names []ServiceKey
	for _, name := range s.Aliases {
		if name != key.Hostname && name.Usable() {
			names = append(names, ServiceKey{Hostname: name, Namespace: key.Namespace})
		}
	}
	return names
}

func namedKey(name, of ServiceKey, source ShardKey) string {
	return name.sortKey() + nul + of.sortKey() + nul + source.prefix()
}

// indexNames moves the index by name from the old shard to the new one.
func (x *servicesTxn) indexNames(source ShardKey, key ServiceKey, old, now *Shard) {
	for _, name := range old.namesIn(key) {
		x.names.Delete(namedKey(name, key, source))
	}
	for _, name := range now.namesIn(key) {
		x.names.Set(namedKey(name, key, source), key)
	}
}

// recomputeNames brings the services that are made of names up to date with the dirty
// ones. A service that is a name itself gives its own names to none but its own
// shards, so that these are looked at as well.
func (c *contributions) recomputeNames() {
	if c.services.names.Len() == 0 && !c.services.hadNames {
		return
	}
	names := map[ServiceKey]bool{}
	for key := range c.dirty {
		c.addNamesOf(names, key)
		if c.services.isName(key) {
			names[key] = true
		}
	}
	for name := range maps.Clone(names) {
		if len(c.of(name)) > 0 {
			c.dirty[name] = true
			c.addNamesOf(names, name)
		}
	}
	for name := range names {
		c.recomputeName(name)
	}
}

// addNamesOf adds the names that the service had and has.
func (c *contributions) addNamesOf(to map[ServiceKey]bool, key ServiceKey) {
	if svc, had := c.services.Get(key.sortKey()); had {
		svc.Shards.addNames(to, key)
	}
	c.of(key).addNames(to, key)
}

func (s ShardSet) addNames(to map[ServiceKey]bool, key ServiceKey) {
	for _, shard := range s.All() {
		for _, name := range shard.namesIn(key) {
			to[name] = true
		}
	}
}

// isName reports whether a registry gives another service this name.
func (x *servicesTxn) isName(key ServiceKey) (is bool) {
	x.names.WalkPrefix(key.sortKey()+nul, func(string, ServiceKey) bool { is = true; return true })
	return is
}

// recomputeName gives the service of that name the shards of those that give the name.
func (c *contributions) recomputeName(name ServiceKey) {
	want := map[ShardKey]*Shard{}
	c.services.names.WalkPrefix(name.sortKey()+nul, func(_ string, of ServiceKey) bool {
		shards := c.of(of)
		if !c.services.isName(of) && shards.allGive(name.Hostname) {
			return false
		}
		for source, shard := range shards.All() {
			if want[source] == nil && slices.Contains(shard.Aliases, name.Hostname) {
				want[source] = shard.under(of.Hostname)
			}
		}
		return false
	})
	c.sayUnder(name, want)
}

// sayUnder gives the service of that name these shards, in place of those that no registry
// gave. It takes want over.
func (c *contributions) sayUnder(name ServiceKey, want map[ShardKey]*Shard) {
	for source, have := range c.of(name).All() {
		switch {
		case have.NameOf == "":
			delete(want, source)
		case want[source] == nil:
			c.set(name, source, nil)
		case have.Equal(want[source]):
			delete(want, source)
		}
	}
	for source, shard := range want {
		c.set(name, source, shard)
	}
}

// under is the shard as that of a service which is one of its names. It has no
// virtual addresses: those lead to the instances of all registries.
func (s *Shard) under(of Hostname) *Shard {
	return &Shard{
		NameOf: of, Ports: s.Ports, Resolution: s.Resolution, MeshExternal: s.MeshExternal, ExportTo: s.ExportTo,
		ServiceAccounts: s.ServiceAccounts, Created: s.Created, UID: s.UID, Labels: s.Labels, TrafficDistribution: s.TrafficDistribution,
		Affinity: s.Affinity, Endpoints: s.Endpoints,
	}
}

// allGive reports whether all registries that have the service give it the name.
func (s ShardSet) allGive(name Hostname) bool {
	for _, shard := range s.All() {
		if shard.NameOf == "" && !slices.Contains(shard.Aliases, name) {
			return false
		}
	}
	return true
}

// aliasesOf are the names that all registries give the service, sorted.
func aliasesOf(in mergeInput) []Hostname {
	var names []Hostname
	if in.isName {
		return nil
	}
	for _, shard := range in.shards.All() {
		for _, name := range shard.namesIn(in.key) {
			if in.shards.allGive(name.Hostname) {
				names = append(names, name.Hostname)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
