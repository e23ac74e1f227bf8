package federation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"isthmus.dev/isthmus/internal/btree"
)

// bindingsTxn finds the services that are bound to a service.
type bindingsTxn struct {
	btree.Txn[ServiceKey]
	contributions *contributions
}

func bindingKey(target, binder ServiceKey, source ShardKey) string {
	return target.sortKey() + nul + binder.sortKey() + nul + source.prefix()
}

func (x *bindingsTxn) index(source ShardKey, key ServiceKey, old, now *Shard) {
	var before, after []BoundService
	if old != nil {
		before = old.Bound
	}
	if now != nil {
		after = now.Bound
	}
	if slices.EqualFunc(before, after, boundEqual) {
		return
	}
	x.contributions.rebound = true
	for _, b := range before {
		x.Delete(bindingKey(b.Service, key, source))
		x.Delete(bindingKey(b.anywhere(), key, source))
	}
	for _, b := range after {
		x.Set(bindingKey(b.Service, key, source), key)
		x.Set(bindingKey(b.anywhere(), key, source), key)
	}
}

// targetOf is the service that is meant.
func (x *bindingsTxn) targetOf(b BoundService) ServiceKey {
	if len(x.contributions.of(b.Service)) == 0 && len(x.contributions.of(b.anywhere())) > 0 {
		return b.anywhere()
	}
	return b.Service
}

// targets are the services that the shard is bound to and that there are; none
// where they lead back to the service itself. What is wrong heals by itself.
func (x *bindingsTxn) targets(key ServiceKey, shard *Shard, circle map[ServiceKey]bool) ([]bound, *Problem) {
	object := "Service " + key.String()
	var targets []bound
	var missing []string
	field := ""
	for i, b := range shard.Bound {
		target := x.targetOf(b)
		if circle[target] {
			return nil, &Problem{
				Code: "BINDING_CYCLE", Object: object, Field: fmt.Sprintf("services[%d]", i),
				Message: fmt.Sprintf("%s leads back to this service, which has no bound endpoints for that; bind it to services that are not made of it", target),
			}
		}
		if svc, ok := x.contributions.services.Get(target.sortKey()); ok {
			targets = append(targets, bound{b, svc})
			continue
		}
		missing = append(missing, b.Service.String())
		field = cmp.Or(field, fmt.Sprintf("services[%d]", i))
	}
	if missing == nil {
		return targets, nil
	}
	return targets, &Problem{
		Code: "BINDING_TARGET_MISSING", Object: object, Field: field,
		Message: fmt.Sprintf("no cluster offers %s; the others are used until one does", strings.Join(firstOf(missing, 5), ", ")),
	}
}

func (x *bindingsTxn) boundToAny(key ServiceKey, changed map[ServiceKey]bool) bool {
	for _, shard := range x.contributions.of(key).All() {
		for _, b := range shard.Bound {
			if changed[b.Service] || changed[b.anywhere()] {
				return true
			}
		}
	}
	return false
}

// order lists the dirty services and all that are bound to them, over any
// number of steps, so that a service comes after those that it is bound to. The
// services of a circle are one group.
func (x *bindingsTxn) order() [][]ServiceKey {
	if x.Len() == 0 {
		groups := make([][]ServiceKey, 0, len(x.contributions.dirty))
		for key := range x.contributions.dirty {
			groups = append(groups, []ServiceKey{key})
		}
		return groups
	}
	w := circleWalk{
		bindings: x, among: maps.Clone(x.contributions.dirty), seen: map[ServiceKey]int{}, low: map[ServiceKey]int{},
		open: map[ServiceKey]bool{},
	}
	for key := range x.contributions.dirty {
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
	bindings *bindingsTxn
	among    map[ServiceKey]bool
	seen     map[ServiceKey]int // in which turn, from 1
	low      map[ServiceKey]int // the first turn that the service leads back to
	open     map[ServiceKey]bool
	stack    []ServiceKey
	groups   [][]ServiceKey
}

func (w *circleWalk) addBinders(key ServiceKey) {
	for rest := []ServiceKey{key}; len(rest) > 0; {
		last := rest[len(rest)-1]
		rest = rest[:len(rest)-1]
		w.bindings.WalkPrefix(last.sortKey()+nul, func(_ string, binder ServiceKey) bool {
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
	for _, shard := range w.bindings.contributions.of(key).All() {
		for _, b := range shard.Bound {
			switch target := w.bindings.targetOf(b); {
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
