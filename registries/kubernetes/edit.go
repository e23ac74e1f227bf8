package kubernetes

import (
	"maps"
	"time"

	"isthmus.dev/isthmus/federation"
)

// edit returns what changed since the last edit, and false if nothing did. A
// full edit holds everything; it is asked for after complete lists.
func (m *model) edit(full bool) (federation.Edit, bool) {
	var e federation.Edit
	in := m.endpointContext()
	for k := range m.dirtyServices {
		m.editService(k, in, &e.Services)
	}
	for k := range m.dirtyPods {
		m.editWorkload(k, in, &e.Workloads)
	}
	e.Problems = m.problems.edit()
	clear(m.dirtyServices)
	clear(m.dirtyPods)
	if m.identityDirty || full {
		m.identityDirty = false
		identity := m.cluster
		e.Identity = &identity
	}
	if full {
		e.Services = federation.Delta[federation.ServiceKey, *federation.Shard]{Full: true, Set: maps.Clone(m.sent.services)}
		e.Workloads = federation.Delta[federation.WorkloadKey, *federation.Workload]{Full: true, Set: maps.Clone(m.sent.workloads)}
		e.Problems = federation.Delta[string, federation.Problem]{Full: true, Set: maps.Clone(m.problems.now)}
		return e, true
	}
	return e, e.Identity != nil || len(e.Services.Set)+len(e.Services.Gone)+len(e.Workloads.Set)+len(e.Workloads.Gone)+
		len(e.Problems.Set)+len(e.Problems.Gone) > 0
}

func (m *model) editService(k key, in endpointContext, d *federation.Delta[federation.ServiceKey, *federation.Shard]) {
	defer m.keepBefore(subject{kindServices, k}, "endpoints of "+k.String())
	s := m.services[k]
	if s == nil {
		m.problems.set("endpoints of "+k.String(), nil)
		m.absences.keep(k, nil, time.Time{})
		if name, ok := m.sent.names[k]; ok {
			delete(m.sent.names, k)
			delete(m.sent.services, name)
			d.Gone = append(d.Gone, name)
		}
		return
	}
	in.absent = m.absences.missing[k]
	made := join(s, m.slices.of(k), in)
	shard := made.shard
	m.problems.set("endpoints of "+k.String(), made.problems)
	m.absences.keep(k, made.absent, made.due)
	if old := m.sent.services[s.service]; old != nil && old.Equal(shard) {
		return
	}
	m.sent.names[k], m.sent.services[s.service] = s.service, shard
	if d.Set == nil {
		d.Set = map[federation.ServiceKey]*federation.Shard{}
	}
	d.Set[s.service] = shard
}

func (m *model) editWorkload(k key, in endpointContext, d *federation.Delta[federation.WorkloadKey, *federation.Workload]) {
	owner := "workload of " + k.String()
	defer m.keepBefore(subject{kindPods, k}, owner)
	m.problems.set(owner, nil)
	name := federation.WorkloadKey{Namespace: k.Namespace, Name: k.Name}
	var now *federation.Workload
	if p := m.pods[k]; p != nil {
		network := p.network
		if network == "" {
			network = in.network
		}
		now = p.workload(p.locatedBy(in), network)
	}
	old := m.sent.workloads[name]
	switch {
	case now == nil && old == nil, now != nil && old != nil && old.Equal(now):
	case now == nil:
		delete(m.sent.workloads, name)
		d.Gone = append(d.Gone, name)
	default:
		m.sent.workloads[name] = now
		if d.Set == nil {
			d.Set = map[federation.WorkloadKey]*federation.Workload{}
		}
		d.Set[name] = now
	}
}
