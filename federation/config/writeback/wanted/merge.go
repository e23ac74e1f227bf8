package wanted

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/gatewayapi"
)

// merging is what one status comes to.
type merging struct {
	own     []string // types of conditions
	want    Status
	current map[string]any
	now     string
}

// field is one field of the status of a kind: what it comes to, nil for nothing.
type field struct {
	name string
	make func(m merging, now any) any
}

// Change is the merge patch that has the status say what is wanted; nil: it does already.
// What others wrote stays. Without want, what is the hub's is removed.
func Change(kind federation.Kind, current map[string]any, want *Status, now time.Time) map[string]any {
	of := rows[kind]
	m := merging{own: of.own, current: current, now: now.UTC().Format(time.RFC3339)}
	if want != nil {
		m.want = *want
	} else {
		m.want.Conditions = unclaimed(of.unclaimed)
	}
	patch := map[string]any{}
	for _, f := range of.fields {
		before := current[f.name]
		after := f.make(m, before)
		if !reflect.DeepEqual(before, after) && (!empty(before) || !empty(after)) {
			patch[f.name] = after
		}
	}
	if len(patch) == 0 {
		return nil
	}
	return patch
}

// unclaimed are the conditions of an object that no controller has claimed, as the API has them.
func unclaimed(types []string) (all []Condition) {
	for _, t := range types {
		all = append(all, Condition{Type: t, Status: "Unknown", Reason: "Pending", Message: "Waiting for controller"})
	}
	return all
}

func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

func list(v any) []any {
	all, _ := v.([]any)
	return all
}

func text(v any, name string) string {
	fields, _ := v.(map[string]any)
	value, _ := fields[name].(string)
	return value
}

// conditions are those that are wanted, at the places where they are now, and those of others.
func (m merging) conditions(now []any, want []Condition) any {
	all := []any{}
	done := map[string]bool{}
	for _, c := range now {
		kind := text(c, "type")
		at := slices.IndexFunc(want, func(w Condition) bool { return w.Type == kind })
		switch {
		case done[kind]:
		case at >= 0:
			all = append(all, m.condition(c, want[at]))
			done[kind] = true
		case m.want.Refused || !slices.Contains(m.own, kind):
			all = append(all, c)
		}
	}
	for _, w := range want {
		if !done[w.Type] {
			all = append(all, m.condition(nil, w))
		}
	}
	return all
}

// condition is one that is wanted; it keeps the time of its last transition.
func (m merging) condition(now any, want Condition) any {
	before, _ := now.(map[string]any)
	if want.Pending && before != nil && before["observedGeneration"] == m.want.Generation {
		return before
	}
	after := map[string]any{
		"type": want.Type, "status": want.Status, "reason": want.Reason, "message": want.Message,
		"lastTransitionTime": m.now,
	}
	if m.want.Generation != 0 {
		after["observedGeneration"] = m.want.Generation
	}
	if before["status"] == want.Status && text(before, "lastTransitionTime") != "" {
		after["lastTransitionTime"] = before["lastTransitionTime"]
	}
	return after
}

func (m merging) listeners(now any) any {
	if m.want.Refused {
		return now
	}
	all := []any{}
	for _, l := range m.want.Listeners {
		fields := map[string]any{"name": l.Name, "attachedRoutes": int64(l.Attached)}
		kinds := []any{}
		for _, k := range l.Kinds {
			kinds = append(kinds, map[string]any{"group": k.Group, "kind": k.Name})
		}
		fields["supportedKinds"] = kinds
		var before []any
		for _, n := range list(now) {
			if text(n, "name") == l.Name {
				before = list(n.(map[string]any)["conditions"])
			}
		}
		fields["conditions"] = m.conditions(before, l.Conditions)
		all = append(all, fields)
	}
	return all
}

func (m merging) sets(now any) any {
	if m.want.Refused {
		return now
	}
	if m.want.Sets == 0 {
		return nil
	}
	return int64(m.want.Sets)
}

// mostParents is how many entries the API allows for a route.
const mostParents = 32

func (m merging) parents(now any) any { return m.entries(list(now), "parentRef", mostParents) }

func (m merging) ancestors(now any) any {
	return m.entries(list(now), "ancestorRef", gatewayapi.MaxAncestors)
}

// entries are those that are wanted, at the places where they are now, and those of other
// controllers. The field says what an entry is about.
func (m merging) entries(now []any, about string, most int) any {
	all := []any{}
	missing := slices.Clone(m.want.Parents)
	for _, entry := range now {
		if !gatewayapi.IsController(text(entry, "controllerName")) {
			all = append(all, entry)
			continue
		}
		fields, _ := entry.(map[string]any)
		if at := slices.IndexFunc(missing, func(p Parent) bool { return p.isOf(fields, about) }); at >= 0 {
			all = append(all, m.entry(missing[at], about, list(fields["conditions"])))
			missing = slices.Delete(missing, at, at+1)
		}
	}
	for _, p := range missing {
		all = append(all, m.entry(p, about, nil))
	}
	return all[:min(len(all), most)]
}

func (p Parent) isOf(entry map[string]any, about string) bool {
	ref, _ := entry[about].(map[string]any)
	return entry["controllerName"] == p.Controller && maps.Equal(ref, p.Ref)
}

func (m merging) entry(p Parent, about string, before []any) any {
	return map[string]any{about: p.Ref, "controllerName": p.Controller, "conditions": m.conditions(before, p.Conditions)}
}

func (m merging) addresses(now any) any {
	if m.want.Refused {
		return now
	}
	all := []any{}
	for _, a := range m.want.Addresses {
		if a.IP != "" {
			all = append(all, map[string]any{"type": "IPAddress", "value": a.IP})
		} else {
			all = append(all, map[string]any{"type": "Hostname", "value": a.Host})
		}
	}
	return all
}

func (m merging) messages(any) any {
	all := []any{}
	for _, w := range m.want.Messages {
		all = append(all, map[string]any{"level": w.Level, "type": map[string]any{"code": w.Code, "name": w.Code}})
	}
	return all
}

func (m merging) generation(any) any {
	if m.want.Generation == 0 {
		return nil
	}
	return m.want.Generation
}

func (m merging) loadBalancer(any) any {
	all := []any{}
	for _, a := range m.want.LoadBalancer {
		if a.IP != "" {
			all = append(all, map[string]any{"ip": a.IP})
		} else {
			all = append(all, map[string]any{"hostname": a.Host})
		}
	}
	if len(all) == 0 {
		return nil
	}
	return map[string]any{"ingress": all}
}
