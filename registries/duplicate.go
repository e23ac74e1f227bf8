package registries

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"isthmus.dev/isthmus/federation"
)

// duplicates keeps one cluster from being served under several IDs (B-K16). Of those
// that lead to it one is served: the first by rank, then by ID, never by arrival.
type duplicates struct {
	mu sync.Mutex
	of map[string][]duplicate // by the UID of the cluster
}

type duplicate struct {
	member *member
	rank   int
}

// join notes that the member leads to the cluster of that UID. It returns who is to
// be served, and who was noted behind the member.
func (t *duplicates) join(m *member, uid string, rank int) (first *member, behind []*member) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for other := range t.of {
		if other != uid {
			t.drop(m, other)
		}
	}
	all := slices.DeleteFunc(t.of[uid], func(o duplicate) bool { return o.member == m })
	all = append(all, duplicate{m, rank})
	slices.SortFunc(all, func(a, b duplicate) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.member.shard.Cluster, b.member.shard.Cluster))
	})
	t.of[uid] = all
	at := slices.IndexFunc(all, func(o duplicate) bool { return o.member == m })
	for _, o := range all[at+1:] {
		behind = append(behind, o.member)
	}
	return all[0].member, behind
}

// leave notes that the member leads nowhere any more, and returns who may be served
// now.
func (t *duplicates) leave(m *member) (next []*member) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for uid := range t.of {
		next = append(next, t.drop(m, uid)...)
	}
	return next
}

// drop takes the member from those of a UID. The caller holds mu.
func (t *duplicates) drop(m *member, uid string) (left []*member) {
	before := len(t.of[uid])
	t.of[uid] = slices.DeleteFunc(t.of[uid], func(o duplicate) bool { return o.member == m })
	if len(t.of[uid]) == before {
		return nil
	}
	for _, o := range t.of[uid] {
		left = append(left, o.member)
	}
	if len(left) == 0 {
		delete(t.of, uid)
	}
	return left
}

// firstOf is who is to be served of those among whom the member is.
func (t *duplicates) firstOf(m *member) *member {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, all := range t.of {
		if slices.ContainsFunc(all, func(o duplicate) bool { return o.member == m }) {
			return all[0].member
		}
	}
	return m
}

// duplicatePause is the time between two looks whether a cluster still is one that
// another ID has; the end of that one ends it sooner.
const duplicatePause = 5 * time.Minute

// isDuplicate reports whether the cluster that the edit is of is served under another ID.
// Those behind this one are to let go of it once the edit is published. The caller
// holds member.mu.
func (r *attempt) isDuplicate(e federation.Edit) (is bool, behind []*member) {
	m := r.instance.member
	if !r.instance.cluster.Identified || !e.Services.Full || e.Identity == nil || e.Identity.UID == "" {
		return false, nil
	}
	first, behind := m.supervisor.duplicates.join(m, e.Identity.UID, r.instance.cluster.Rank)
	if first == m {
		m.operator.showDuplicate("")
		return false, behind
	}
	r.refuseDuplicate(first.shard.Cluster)
	return true, nil
}

// later has Run call the function with mu held, unless the member is detached then.
func (m *member) later(what func()) {
	m.supervisor.start(func(context.Context) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if !m.detached {
			what()
		}
	})
}

// yield lets go of a cluster that another ID has now.
func (m *member) yield() {
	first := m.supervisor.duplicates.firstOf(m)
	if first == m || m.current == nil || m.current.attempt == nil || m.operator.duplicate == first.shard.Cluster {
		return
	}
	m.current.attempt.refuseDuplicate(first.shard.Cluster)
}

// retry has the member look again at once.
func (m *member) retry() {
	if m.operator.duplicate != "" && m.current != nil {
		m.current.kick.Notify()
	}
}

// refuseDuplicate does not serve the cluster, which another ID has.
func (r *attempt) refuseDuplicate(by federation.ClusterID) {
	m := r.instance.member
	r.over, r.instance.duplicate = true, true
	if r.cancel != nil {
		r.cancel()
	}
	why := fmt.Sprintf("this cluster is attached already, as %s: detach one of the two", by)
	m.options.Logger.Error("a cluster is not served: another ID has it", "cluster", m.shard.Cluster, "holder", by)
	if r.instance == m.candidate {
		m.status.notice = "the newer configuration is not in use: " + why
		m.publishStatus()
		return
	}
	if m.synced || m.known.served {
		m.update(federation.Edit{
			Services:  federation.Delta[federation.ServiceKey, *federation.Shard]{Full: true},
			Workloads: federation.Delta[federation.WorkloadKey, *federation.Workload]{Full: true},
			Problems:  federation.Delta[string, federation.Problem]{Full: true},
		})
	}
	m.known.drop()
	m.saver.mark(func(u *unsaved) { u.whole = true })
	m.operator.showDuplicate(by)
	m.fail(why)
}
