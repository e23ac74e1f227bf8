package federation

import "time"

// merging makes services from what registries contributed to them.
type merging struct {
	contributed
	policy  *AddressPolicy
	objects *objectsTxn
	clock   time.Time
	drains  []ServiceDrain // in force
	mesh    *MeshSettings
}

// noteObject notes that an object changed which may be a Drain, or the settings of the mesh.
// Endpoints of any service may be what a Drain covers.
func (m *merging) noteObject(key ObjectKey) {
	switch {
	case key.Of() == DrainKind:
		m.contributions.markAll()
	case key == MeshSettingsKey:
		m.noteMesh()
	}
}

// tick notes that time has passed. Where that changes what a Drain takes away, the services
// that it covers are merged again; which endpoints a Drain covers does not change.
func (m *merging) tick(before time.Time) {
	if m.clock.Equal(before) {
		return
	}
	changed := false
	m.objects.byKey.WalkPrefix(DrainKind.prefix(), func(_ string, o *Object) bool {
		changed = RampOf(o).At(before) != RampOf(o).At(m.clock)
		return changed
	})
	if !changed {
		return
	}
	m.services.Walk(func(_ string, svc *Service) bool {
		if len(svc.Drains) > 0 {
			m.contributions.dirty[svc.Key] = true
		}
		return false
	})
}

// recompute merges each service once: those that registries changed, those whose
// selections changed, and those that are bound to a service that changed. Its
// cost is that of these.
func (m *merging) recompute() {
	if len(m.contributions.dirty) == 0 {
		return
	}
	m.contributions.recomputeNames()
	m.drains, m.mesh = drainsOf(m.objects, m.clock), m.objects.mesh()
	changed := map[ServiceKey]bool{}
	for _, group := range m.bindings.order() {
		circle := map[ServiceKey]bool{}
		for _, key := range group {
			circle[key] = true
		}
		for _, key := range group {
			if m.contributions.dirty[key] || m.contributions.rebound || m.bindings.boundToAny(key, changed) {
				changed[key] = m.merge(key, circle)
			}
		}
	}
	m.contributions.clear()
}

// merge makes the service out of its shards: merges, indexes and records, and
// tells whether that made a difference. No shards: the service is gone. The
// circle is of bindings that lead back to the service.
func (m *merging) merge(key ServiceKey, circle map[ServiceKey]bool) bool {
	old, _ := m.services.Get(key.sortKey())
	var now *Service
	shards, found := m.contributions.of(key), m.find(key, old, circle)
	switch {
	case len(shards) > 0:
		now = merge(mergeInput{
			key: key, shards: shards, found: found, precedence: m.clusters.precedence, place: m.placing.place, policy: *m.policy,
			isName: m.services.isName(key), drains: m.drains, mesh: m.mesh, before: old,
		})
		reasons := reasonsFor(old, now)
		if reasons == 0 {
			return false
		}
		now.stamp(old, reasons, m.changes.version)
	case old == nil:
		return false
	}
	m.changes.record(serviceEntry, key.sortKey())
	m.services.replace(key, old, now)
	m.moveEndpoints(key, old, now)
	return true
}

func (s *Service) stamp(old *Service, reasons Reason, version uint64) {
	if old != nil {
		s.SpecVersion, s.EndpointsVersion, s.AccountsVersion = old.SpecVersion, old.EndpointsVersion, old.AccountsVersion
	}
	for reason, at := range map[Reason]*uint64{
		ReasonSpec: &s.SpecVersion, ReasonEndpoints: &s.EndpointsVersion,
		ReasonAccounts: &s.AccountsVersion,
	} {
		if reasons&reason != 0 {
			*at = version
		}
	}
}

// find finds what selectors and bindings add to the shards of a service, and
// notes what is wrong with its bindings.
func (m *merging) find(key ServiceKey, old *Service, circle map[ServiceKey]bool) map[ShardKey]found {
	shards := m.contributions.of(key)
	if old != nil {
		for source, shard := range old.Shards.All() {
			if len(shard.Bound) > 0 && (shards.Of(source) == nil || len(shards.Of(source).Bound) == 0) {
				m.clusters.setProblem(source, problemOfBinding, key.sortKey(), nil)
			}
		}
	}
	var all map[ShardKey]found
	for source, shard := range shards.All() {
		if !shard.Selector.active() && len(shard.Bound) == 0 {
			continue
		}
		if all == nil {
			all = map[ShardKey]found{}
		}
		f := found{selected: m.workloads.selected(source, key.Namespace, shard)}
		if len(shard.Bound) > 0 {
			targets, problem := m.bindings.targets(key, shard, circle)
			m.clusters.setProblem(source, problemOfBinding, key.sortKey(), problem)
			f.lent = lend(source, shard, targets)
		}
		all[source] = f
	}
	return all
}

// moveEndpoints moves the index by address and the counts of the clusters from the
// old endpoints to the new ones.
func (m *merging) moveEndpoints(key ServiceKey, old, now *Service) {
	before, after := old.endpointsOf(), now.endpointsOf()
	for shard, was := range before {
		is, stays := after[shard]
		m.addresses.moveEndpoints(addressOwner{shard: shard, service: key}, was, is)
		services := 0
		if !stays {
			services = -1
		}
		m.count(shard, services, len(is)-len(was))
	}
	for shard, is := range after {
		if _, was := before[shard]; !was {
			m.addresses.moveEndpoints(addressOwner{shard: shard, service: key}, nil, is)
			m.count(shard, 1, len(is))
		}
	}
}

func (m *merging) count(shard ShardKey, services, endpoints int) {
	if services != 0 || endpoints != 0 {
		m.clusters.count(shard, func(c *Cluster) { c.Services += services; c.Endpoints += endpoints })
	}
}

func (s *Service) endpointsOf() map[ShardKey][]Endpoint {
	if s == nil {
		return nil
	}
	m := make(map[ShardKey][]Endpoint, len(s.Endpoints))
	for _, e := range s.Endpoints {
		m[e.Shard] = e.Endpoints
	}
	return m
}
