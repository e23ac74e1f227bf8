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
	want    Status
	current map[string]any
	now     string
}

// field is one field of the status of a kind: what it comes to, nil for nothing.
type field struct {
	name string
	make func(m merging, now any) any
}

var (
	conditionsField = field{"conditions", func(m merging, now any) any { return m.conditions(list(now), m.want.Conditions) }}
	gatewayFields   = []field{conditionsField, {"listeners", merging.listeners}, {"addresses", merging.addresses}}
	istioFields     = []field{conditionsField, {"validationMessages", merging.messages}, {"observedGeneration", merging.generation}}
	routeFields     = []field{{"parents", merging.parents}}
	ingressFields   = []field{{"loadBalancer", merging.loadBalancer}}
)

// fieldsOf are the fields of the status that are the hub's.
func fieldsOf(kind federation.Kind) []field {
	switch {
	case kind == ofGroup("GatewayClass"):
		return []field{conditionsField}
	case kind == ofGroup("Gateway"):
		return gatewayFields
	case kind.Name == "Ingress":
		return ingressFields
	case slices.Contains(gatewayapi.Routes(), kind):
		return routeFields
	}
	return istioFields
}

// Change is the merge patch that has the status say what is wanted; nil: it does already.
// What others wrote stays. Without want, what is the hub's is removed.
func Change(kind federation.Kind, current map[string]any, want *Status, now time.Time) map[string]any {
	m := merging{current: current, now: now.UTC().Format(time.RFC3339)}
	if want != nil {
		m.want = *want
	} else if kind == ofGroup("Gateway") || kind == ofGroup("GatewayClass") {
		m.want.Conditions = unclaimed(kind)
	}
	patch := map[string]any{}
	for _, f := range fieldsOf(kind) {
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

// unclaimed are the conditions of an object that no controller has taken up, as the API has them.
func unclaimed(kind federation.Kind) []Condition {
	all := []Condition{{Type: accepted, Status: "Unknown", Reason: "Pending", Message: "Waiting for controller"}}
	if kind == ofGroup("Gateway") {
		all = append(all, Condition{Type: programmed, Status: "Unknown", Reason: "Pending", Message: "Waiting for controller"})
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

// ownTypes are the types of conditions of which only the hub's own may be.
var ownTypes = []string{accepted, programmed, conflicted, "ResolvedRefs", reconciled, analyzed}

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
		case !slices.Contains(ownTypes, kind):
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
	if want.Unsettled && before != nil && before["observedGeneration"] == m.want.Generation {
		return before
	}
	after := map[string]any{"type": want.Type, "status": want.Status, "reason": want.Reason, "message": want.Message, "lastTransitionTime": m.now}
	if m.want.Generation != 0 {
		after["observedGeneration"] = m.want.Generation
	}
	if before["status"] == want.Status && text(before, "lastTransitionTime") != "" {
		after["lastTransitionTime"] = before["lastTransitionTime"]
	}
	return after
}

func (m merging) listeners(now any) any {
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

// parents are those that are wanted, at the places where they are now, and those of other
// controllers.
func (m merging) parents(now any) any {
	all := []any{}
	missing := slices.Clone(m.want.Parents)
	for _, entry := range list(now) {
		if !gatewayapi.IsController(text(entry, "controllerName")) {
			all = append(all, entry)
			continue
		}
		fields, _ := entry.(map[string]any)
		if at := slices.IndexFunc(missing, func(p Parent) bool { return p.isOf(fields) }); at >= 0 {
			all = append(all, m.parent(missing[at], list(fields["conditions"])))
			missing = slices.Delete(missing, at, at+1)
		}
	}
	for _, p := range missing {
		all = append(all, m.parent(p, nil))
	}
	return all[:min(len(all), mostParents)]
}

func (p Parent) isOf(entry map[string]any) bool {
	ref, _ := entry["parentRef"].(map[string]any)
	return entry["controllerName"] == p.Controller && maps.Equal(ref, p.Ref)
}

func (m merging) parent(p Parent, before []any) any {
	return map[string]any{"parentRef": p.Ref, "controllerName": p.Controller, "conditions": m.conditions(before, p.Conditions)}
}

// mostParents is what the API allows for a route.
const mostParents = 32

func (m merging) addresses(any) any {
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
