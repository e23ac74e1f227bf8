package config

import (
	"maps"
	"slices"
	"strconv"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/external"
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/internal/btree"
	"isthmus.dev/isthmus/internal/parallel"
)

// Next is the configuration after the changes, and what they mean to the mesh.
// It is pure: publication and dry runs both call it. The state is not changed,
// and the same objects give the same state in whatever order they come. What an
// Event calls Old is not looked at but for its key. The first Edit that follows
// from NewState is full.
func (s *State) Next(changes []Event, revision int64) (*State, federation.Edit) {
	return s.next(changes, revision, nil)
}

// next is Next. What the previewed state has decoded is not decoded again; nil:
// nothing was previewed.
func (s *State) next(changes []Event, revision int64, previewed *State) (*State, federation.Edit) {
	d := s.draft()
	decoded := s.holdAll(changes, previewed)
	for i, c := range changes {
		switch {
		case c.New != nil:
			d.set(c.New.Key, decoded[i])
		case c.Old != nil:
			d.set(c.Old.Key, nil)
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(d.touched), federation.ServiceKey.Compare) {
		d.recompute(key)
	}
	d.takeReports()
	d.agree()
	next := d.commit(max(revision, s.revision))
	return next, federation.Edit{
		Source: s.Source(), Services: d.services.delta(), Workloads: d.workloads.delta(), Problems: d.problems.delta(),
		Objects: d.shown.delta(), Verdicts: d.verdicts.delta(), Revision: next.revision,
	}
}

// holdAll decodes the new objects. One that is as before or as previewed is taken
// from there.
func (s *State) holdAll(changes []Event, previewed *State) []*held {
	all := make([]*held, len(changes))
	labels := newLabelSets()
	parallel.Each(len(changes), func(i int) {
		now := changes[i].New
		if now == nil {
			return
		}
		for _, known := range []*State{s, previewed} {
			all[i] = known.heldLike(now)
			if all[i] != nil {
				return
			}
		}
		all[i] = now.read.takeHeld()
		if all[i] != nil {
			return
		}
		all[i] = s.holdContained(now, labels)
	})
	return all
}

// heldLike is what the state has decoded of the same bytes; nil: nothing.
func (s *State) heldLike(o *Object) *held {
	if s == nil {
		return nil
	}
	h, ok := s.objects.Get(objectSortKey(o.Key))
	if !ok || !h.object.Alike(o) {
		return nil
	}
	return h.at(o)
}

// draft is a State in the making, and the Edit that goes with it.
type draft struct {
	base           *State
	objects        btree.Txn[*held]
	entries        btree.Txn[*external.Reading]
	bindings       btree.Txn[*kind.Binding]
	shards         btree.Txn[*federation.Shard]
	found          btree.Txn[[]federation.Problem]
	taken          btree.Txn[struct{}]
	chosen         btree.Txn[struct{}]
	unallocated    btree.Txn[federation.ServiceKey]
	touched        map[federation.ServiceKey]bool  // whose objects or allocation changed
	dirtyWorkloads map[federation.WorkloadKey]bool // workloads whose object or health changed
	services       deltaBuilder[federation.ServiceKey, *federation.Shard]
	workloads      deltaBuilder[federation.WorkloadKey, *federation.Workload]
	problems       deltaBuilder[string, federation.Problem]
	shown          deltaBuilder[federation.ObjectKey, *federation.Object]
	opinions       btree.Txn[federation.Verdict]
	judged         map[federation.VerdictKey]bool // ways of which a hub has another opinion
	verdicts       deltaBuilder[federation.VerdictKey, federation.Verdict]
}

func (s *State) draft() *draft {
	return &draft{
		base: s, objects: s.objects.Txn(), entries: s.entries.Txn(), bindings: s.bindings.Txn(), shards: s.shards.Txn(),
		found: s.found.Txn(), taken: s.taken.Txn(), chosen: s.chosen.Txn(), unallocated: s.unallocated.Txn(),
		touched: map[federation.ServiceKey]bool{}, dirtyWorkloads: map[federation.WorkloadKey]bool{},
		services:  newDeltaBuilder[federation.ServiceKey, *federation.Shard](!s.begun),
		workloads: newDeltaBuilder[federation.WorkloadKey, *federation.Workload](!s.begun),
		problems:  newDeltaBuilder[string, federation.Problem](!s.begun),
		shown:     newDeltaBuilder[federation.ObjectKey, *federation.Object](!s.begun),
		opinions:  s.opinions.Txn(), judged: map[federation.VerdictKey]bool{},
		verdicts: newDeltaBuilder[federation.VerdictKey, federation.Verdict](!s.begun),
	}
}

// deltaBuilder is a Delta in the making: what is set and gone within one edit is what it
// was last.
type deltaBuilder[K comparable, V any] struct {
	full bool
	set  map[K]V
	gone map[K]bool
}

func newDeltaBuilder[K comparable, V any](full bool) deltaBuilder[K, V] {
	return deltaBuilder[K, V]{full: full, set: map[K]V{}, gone: map[K]bool{}}
}

func (t deltaBuilder[K, V]) put(key K, now V) {
	delete(t.gone, key)
	t.set[key] = now
}

func (t deltaBuilder[K, V]) drop(key K) {
	delete(t.set, key)
	t.gone[key] = !t.full
}

func (t deltaBuilder[K, V]) delta() federation.Delta[K, V] {
	out := federation.Delta[K, V]{Full: t.full, Set: t.set}
	for key, counts := range t.gone {
		if counts {
			out.Gone = append(out.Gone, key)
		}
	}
	return out
}

func (d *draft) commit(revision int64) *State {
	return &State{
		options: d.base.options, revision: revision, begun: true,
		objects: d.objects.Commit(), entries: d.entries.Commit(), bindings: d.bindings.Commit(), shards: d.shards.Commit(),
		found: d.found.Commit(), taken: d.taken.Commit(), chosen: d.chosen.Commit(),
		unallocated: d.unallocated.Commit(), opinions: d.opinions.Commit(),
	}
}

// set puts the object in its place; nil removes it.
func (d *draft) set(key federation.ObjectKey, next *held) {
	at := objectSortKey(key)
	old, had := d.objects.Get(at)
	if had && next != nil && old.object.Revision == next.object.Revision && old.object.Alike(next.object) {
		d.objects.Set(at, next)
		return
	}
	if !had && next == nil {
		return
	}
	if !had {
		old = &held{}
	}
	if next != nil {
		d.objects.Set(at, next)
	} else {
		next = &held{}
		d.objects.Delete(at)
	}
	d.show(key, old, next)
	d.complain("object"+nul+at, old.Problems, next.Problems)
	d.index(key, old, next)
}

func (d *draft) show(key federation.ObjectKey, old, now *held) {
	hidden := !kind.IsRead(key.Of())
	if !hidden && (old.shown != nil || now.shown != nil) && (old.shown == nil || now.shown == nil || !old.shown.Equal(now.shown)) {
		if now.shown == nil {
			d.shown.drop(key)
		} else {
			d.shown.put(key, now.shown)
		}
	}
	if old.Workload != nil || now.Workload != nil || key.Of() == federation.WorkloadHealthKind {
		d.dirtyWorkloads[federation.WorkloadKey{Namespace: key.Namespace, Name: key.Name}] = true
	}
}

// index notes for which services the object counts.
func (d *draft) index(key federation.ObjectKey, old, now *held) {
	for _, k := range old.services() {
		d.entries.Delete(memberSortKey(k, key.Name))
		d.touched[k] = true
	}
	for _, k := range now.services() {
		d.entries.Set(memberSortKey(k, key.Name), now.Entry)
		d.touched[k] = true
	}
	if b := old.Binding; b != nil {
		d.bindings.Delete(memberSortKey(b.Key, key.Name))
		d.touched[b.Key] = true
	}
	if b := now.Binding; b != nil {
		d.bindings.Set(memberSortKey(b.Key, key.Name), b)
		d.touched[b.Key] = true
	}
	d.choose(key.Name, old, now)
	if key.Of() == federation.AllocationKind {
		d.allot(key, old, now)
	}
	d.findings(key, old, now)
}

func (h *held) services() []federation.ServiceKey {
	if h.Entry == nil {
		return nil
	}
	return h.Entry.Services()
}

// recompute recomputes the service from all that contributes to it. After a panic it stays
// as it was, and the others go on (R12).
func (d *draft) recompute(key federation.ServiceKey) {
	defer func() {
		if cause := recover(); cause != nil {
			problems := d.derivationFault(key, cause)
			at := serviceSortKey(key)
			before, _ := d.found.Get(at)
			d.complain("service"+nul+at, before, problems)
			d.found.Set(at, problems)
		}
	}()
	d.merge(key)
}

func (d *draft) merge(key federation.ServiceKey) {
	if d.base.options.PoisonService != nil {
		d.base.options.PoisonService(key)
	}
	entries := members(&d.entries, key)
	allocated := d.allocated(key)
	free := d.unchosen(key, allocated)
	shard, problems := external.Service(key, entries, free)
	shard, problems = d.bound(key, shard, problems)
	if shard != nil {
		shard = shard.Normal() // the snapshot shares it
	}
	at := serviceSortKey(key)
	was, had := d.shards.Get(at)
	switch {
	case shard == nil && had:
		d.shards.Delete(at)
		d.services.drop(key)
	case shard != nil && (!had || !was.Equal(shard)):
		d.shards.Set(at, shard)
		d.services.put(key, shard)
	}
	before, _ := d.found.Get(at)
	d.complain("service"+nul+at, before, problems)
	if len(problems) == 0 {
		d.found.Delete(at)
	} else {
		d.found.Set(at, problems)
	}
	if wants := external.WantsVIP(key, entries); wants && len(free) < max(1, len(allocated)) || len(allocated) > 0 && len(entries) == 0 {
		d.unallocated.Set(at, key)
	} else {
		d.unallocated.Delete(at)
	}
}

// bound adds what ServiceBindings of the hostname say: the oldest makes the
// service unless ServiceEntries do.
func (d *draft) bound(key federation.ServiceKey, shard *federation.Shard, problems []federation.Problem) (*federation.Shard,
	[]federation.Problem,
) {
	by := "an older ServiceEntry"
	if shard != nil {
		by = "ServiceEntry " + shard.UID
	}
	for _, b := range slices.SortedFunc(slices.Values(members(&d.bindings, key)), (*kind.Binding).Compare) {
		if shard != nil {
			problems = append(problems, b.Shadowed(by))
			continue
		}
		shard, by = b.Shard, title(b.Object.Key)
	}
	return shard, problems
}

func members[T any](of *btree.Txn[T], key federation.ServiceKey) []T {
	var found []T
	of.WalkPrefix(memberSortKey(key, ""), func(_ string, v T) bool { found = append(found, v); return false })
	return found
}

// complain moves the problems of an owner from the old ones to the new ones.
func (d *draft) complain(owner string, old, now []federation.Problem) {
	for i := range max(len(old), len(now)) {
		name := owner + nul + strconv.Itoa(i)
		switch {
		case i >= len(now):
			d.problems.drop(name)
		case i >= len(old) || old[i] != now[i]:
			d.problems.put(name, now[i])
		}
	}
}
