package federation

import "maps"

// unsettled are the services that must be merged anew before a version is whole.
type unsettled struct {
	dirty   map[ServiceKey]bool
	said    map[ServiceKey]ShardSet // what registries say of them now, where they say something else
	rebound bool                    // bindings or services came or went, and with them circles
}

func newUnsettled() unsettled {
	return unsettled{dirty: map[ServiceKey]bool{}, said: map[ServiceKey]ShardSet{}}
}

// shards are what registries say of the service now.
func (d *draft) shards(key ServiceKey) ShardSet {
	if said, ok := d.said[key]; ok {
		return said
	}
	if svc, ok := d.services.Get(key.sortKey()); ok {
		return svc.Shards
	}
	return nil
}

// say makes the shard what its source says of the service; nil: nothing.
func (d *draft) say(key ServiceKey, source ShardKey, shard *Shard) {
	d.dirty[key] = true
	d.said[key] = d.shards(key).with(source, shard)
}

// settle merges each service once: those that registries spoke of, those whose
// selections changed, and those that are bound to a service that changed. Its
// cost is that of these.
func (d *draft) settle() {
	if len(d.dirty) == 0 {
		return
	}
	d.settleNames()
	changed := map[ServiceKey]bool{}
	for _, group := range d.bindingOrder() {
		circle := map[ServiceKey]bool{}
		for _, key := range group {
			circle[key] = true
		}
		for _, key := range group {
			if d.dirty[key] || d.rebound || d.boundToAny(key, changed) {
				changed[key] = d.put(key, circle)
			}
		}
	}
	d.unsettled = newUnsettled()
}

func (d *draft) boundToAny(key ServiceKey, changed map[ServiceKey]bool) bool {
	for _, shard := range d.shards(key).All() {
		for _, b := range shard.Bound {
			if changed[b.Service] || changed[b.anywhere()] {
				return true
			}
		}
	}
	return false
}

// bindingOrder lists the dirty services and all that are bound to them, over any
// number of steps, so that a service comes after those that it is bound to. The
// services of a circle are one group.
func (d *draft) bindingOrder() [][]ServiceKey {
	if d.bindings.Len() == 0 {
		groups := make([][]ServiceKey, 0, len(d.dirty))
		for key := range d.dirty {
			groups = append(groups, []ServiceKey{key})
		}
		return groups
	}
	w := circleWalk{draft: d, among: maps.Clone(d.dirty), seen: map[ServiceKey]int{}, low: map[ServiceKey]int{}, open: map[ServiceKey]bool{}}
	for key := range d.dirty {
		w.addBinders(key)
	}
	for key := range w.among {
		if w.seen[key] == 0 {
			w.visit(key)
		}
	}
	return w.groups
}

// circleWalk finds the strongly connected parts of the graph of bindings, by
// Tarjan's algorithm: it yields those first that others lead to.
type circleWalk struct {
	draft  *draft
	among  map[ServiceKey]bool
	seen   map[ServiceKey]int // in which turn, from 1
	low    map[ServiceKey]int // the first turn that the service leads back to
	open   map[ServiceKey]bool
	stack  []ServiceKey
	groups [][]ServiceKey
}

func (w *circleWalk) addBinders(key ServiceKey) {
	for rest := []ServiceKey{key}; len(rest) > 0; {
		last := rest[len(rest)-1]
		rest = rest[:len(rest)-1]
		w.draft.bindings.WalkPrefix(last.sortKey()+nul, func(_ string, binder ServiceKey) bool {
			if !w.among[binder] {
				w.among[binder] = true
				rest = append(rest, binder)
			}
			return false
		})
	}
}

func (w *circleWalk) visit(key ServiceKey) {
	turn := len(w.seen) + 1
	w.seen[key], w.low[key], w.open[key] = turn, turn, true
	w.stack = append(w.stack, key)
	at := len(w.stack) - 1
	for _, shard := range w.draft.shards(key).All() {
		for _, b := range shard.Bound {
			switch target := w.draft.targetOf(b); {
			case !w.among[target]:
			case w.seen[target] == 0:
				w.visit(target)
				w.low[key] = min(w.low[key], w.low[target])
			case w.open[target]:
				w.low[key] = min(w.low[key], w.seen[target])
			}
		}
	}
	if w.low[key] != turn {
		return
	}
	group := append([]ServiceKey(nil), w.stack[at:]...)
	w.stack = w.stack[:at]
	for _, k := range group {
		w.open[k] = false
	}
	w.groups = append(w.groups, group)
}
