package registries

import (
	"isthmus.dev/isthmus/federation"
)

// Update publishes the edit, unless it is a full one that must wait for a
// second proof.
func (r *attempt) Update(e federation.Edit) {
	m := r.instance.member
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.silent() {
		return
	}
	now := m.options.Now()
	m.lastEvent = now
	m.options.Metrics.Event(m.shard.Cluster, now)
	duplicate, behind := r.isDuplicate(e)
	if duplicate {
		return
	}
	if e.Services.Full {
		before := m.known.baseline(m.synced)
		e = e.Completed(before)
		if why := suspicious(before, e); why != "" && !r.instance.confirmed && !r.instance.hold.proves(e, now, m.options.HoldFor) {
			r.keepBack(e, why)
			return
		}
		m.lastSync = now
		m.options.Metrics.Synced(m.shard.Cluster, now)
	}
	r.apply(e)
	for _, other := range behind {
		other.later(other.yield)
	}
	m.options.Metrics.Edit(m.shard.Cluster)
}

// Status shows what the registry reports about itself.
func (r *attempt) Status(s federation.RegistryStatus) {
	m := r.instance.member
	m.mu.Lock()
	defer m.mu.Unlock()
	if !r.silent() {
		m.report(r, s)
	}
}

// silent reports whether nothing that the registry says counts.
func (r *attempt) silent() bool {
	m := r.instance.member
	return r.over || r.instance.stopped || m.detached
}

// keepBack does not apply the edit: the registry is restarted, and its next
// list decides.
func (r *attempt) keepBack(e federation.Edit, why string) {
	m := r.instance.member
	r.instance.hold = &hold{edit: e, why: why, since: m.options.Now()}
	r.over = true
	r.cancel()
	m.status.answered(r.instance == m.candidate)
	m.options.Logger.Warn("a list is held", "cluster", m.shard.Cluster, "provider", m.shard.Provider, "reason", why)
	m.publishStatus()
}

// apply publishes the edit together with the status that follows from it. The
// first full edit of a candidate puts it in the place of the current instance,
// in the same version.
func (r *attempt) apply(e federation.Edit) {
	m := r.instance.member
	before := m.options.Aggregate.Latest()
	swap := r.instance == m.candidate && e.Services.Full
	if swap || r.instance == m.current {
		r.updateStatus(&e, swap)
	}
	r.instance.writer.Update(e)
	if swap {
		m.swap()
	}
	if e.Services.Full && !m.started.Load() {
		m.finishStart()
	}
	if after := m.options.Aggregate.Latest(); m.synced && after != before {
		m.saver.mark(func(u *unsaved) { u.note(e, m.shard, before, after) })
	}
}

func (r *attempt) updateStatus(e *federation.Edit, swap bool) {
	m := r.instance.member
	if e.Services.Full {
		first := !r.synced
		r.synced, r.instance.synced, m.synced = true, true, true
		r.instance.confirmed = false
		r.instance.hold = nil
		m.known.drop()
		if first {
			m.status.reported = federation.RegistryStatus{Phase: federation.Ready}
		}
	}
	if swap {
		m.status.notice = ""
	}
	if e.Status != nil {
		m.status.reported = r.statusFrom(*e.Status, m.status.reported)
	}
	status := m.compose()
	e.Status = nil
	if status != m.status.published {
		e.Status = &status
		m.shown(status)
	}
}

// swap puts the candidate in the place of the current instance.
func (m *member) swap() {
	old := m.current
	if err := old.writer.ReplaceBy(m.candidate.writer); err != nil {
		m.options.Logger.Error("a registry was not replaced", "cluster", m.shard.Cluster, "err", err)
		return
	}
	m.current, m.candidate = m.candidate, nil
	old.stop()
	m.options.Logger.Info("a registry was replaced", "cluster", m.shard.Cluster, "provider", m.shard.Provider)
}
