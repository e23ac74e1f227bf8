package gatewayapi

import (
	"slices"

	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/kind"
)

// setView is a ListenerSet that names the Gateway.
type setView struct {
	*federation.Object
	spec    *gateway.ListenerSetSpec
	allowed bool
	status  Status
}

// maxListeners bounds the listeners of a Gateway and its ListenerSets.
const maxListeners = 512

// readSets adds the listeners of the ListenerSets that the Gateway allows, the oldest first.
func (g *gatewayView) readSets(r *federation.Reader) {
	allowed := g.allowedListeners(r)
	for o := range r.Objects().Named(federation.GatewayAPI.ListenerSet, kind.GatewayName(g.Key.Namespace, g.Key.Name)) {
		spec, ok := o.Spec.(*gateway.ListenerSetSpec)
		if ok && gatewayOfSet(o.Key, spec) == g.Key {
			g.sets = append(g.sets, &setView{
				Object: o, spec: spec, allowed: allowed.selects(g.Key.Namespace, o.Key.Namespace), status: Status{Object: o.Key, Digest: o.Digest},
			})
		}
	}
	slices.SortFunc(g.sets, func(a, b *setView) int { return a.CompareAge(b.Object) })
	for i, set := range g.sets {
		switch {
		case !set.allowed:
			set.refuse(gateway.ListenerSetReasonNotAllowed, "the Gateway %s does not allow ListenerSets of namespace %s; see its allowedListeners",
				g.Key.Namespace+"/"+g.Key.Name, set.Key.Namespace)
		case len(g.listeners)+len(set.spec.Listeners) > maxListeners:
			set.allowed = false
			set.refuse(gateway.ListenerSetConditionReason(gateway.ListenerEntryReasonTooManyListeners),
				"with it, the Gateway %s would have more than %d listeners", g.Key.Namespace+"/"+g.Key.Name, maxListeners)
		default:
			for j, entry := range set.spec.Listeners {
				l := g.listener(r, gateway.Listener(entry), j, set.Key, &set.status)
				l.rank = i + 1
				g.listeners = append(g.listeners, l)
			}
		}
	}
}

// allowedListeners is whose ListenerSets the Gateway allows: without a word, none.
func (g *gatewayView) allowedListeners(r *federation.Reader) namespaceSelector {
	allowed := g.spec.AllowedListeners
	if allowed == nil || allowed.Namespaces == nil || allowed.Namespaces.From == nil {
		return namespaceSelector{from: gateway.NamespacesFromNone}
	}
	selector, why := readNamespaces(r, g.Key, allowed.Namespaces.From, allowed.Namespaces.Selector)
	if why != "" {
		g.status.unsupported("spec.allowedListeners.namespaces.selector", "no ListenerSet has an effect: %s", why)
	}
	return selector
}

func (s *setView) refuse(reason gateway.ListenerSetConditionReason, format string, args ...any) {
	var why faults
	why.add(accepted, string(reason), "spec.parentRef", format+"; the ListenerSet has no effect", args...)
	why = append(why, Condition{Type: programmed, Reason: string(reason), Field: "spec.parentRef"})
	s.status.Conditions = why.conditions(accepted, programmed)
}

// gatewayOfSet is the Gateway that a ListenerSet names; no key for a parent of another kind.
func gatewayOfSet(set federation.ObjectKey, spec *gateway.ListenerSetSpec) federation.ObjectKey {
	ref := spec.ParentRef
	if ref.Group != nil && *ref.Group != gateway.GroupName || ref.Kind != nil && string(*ref.Kind) != federation.GatewayAPI.Gateway.Name {
		return federation.ObjectKey{}
	}
	return GatewayNamed(set, ref.Namespace, ref.Name)
}

// GatewayNamed is the Gateway that a reference in the object means: one of its own namespace
// where the reference names none.
func GatewayNamed(in federation.ObjectKey, namespace *gateway.Namespace, name gateway.ObjectName) federation.ObjectKey {
	return federation.ObjectKey{
		Group: federation.GatewayAPI.Gateway.Group, Kind: federation.GatewayAPI.Gateway.Name, Namespace: namespaceOf(in, namespace),
		Name: string(name), Cluster: in.Cluster,
	}
}

// namespaceOf is the namespace that a reference in the object means: its own where the reference
// names none.
func namespaceOf(in federation.ObjectKey, named *gateway.Namespace) string {
	if named == nil || *named == "" {
		return in.Namespace
	}
	return string(*named)
}

// hasSet reports whether the ListenerSet gives the Gateway listeners.
func hasSet(g *gatewayView, key federation.ObjectKey) bool {
	return slices.ContainsFunc(g.sets, func(s *setView) bool { return s.allowed && s.Key == key })
}

// gatewayOf is the Gateway that a parent is, or that has it; nil if there is none.
func gatewayOf(r *federation.Reader, parent federation.ObjectKey) *gatewayView {
	key := parent
	if parent.Of() == federation.GatewayAPI.ListenerSet {
		o, exists := r.Object(parent)
		if !exists || o.Key != parent {
			return nil
		}
		spec, ok := o.Spec.(*gateway.ListenerSetSpec)
		if !ok {
			return nil
		}
		key = gatewayOfSet(o.Key, spec)
	}
	if g := view(r, key); g != nil && g.Key == key {
		return g
	}
	return nil
}

// statusOfSet is the status of a ListenerSet.
func statusOfSet(r *federation.Reader, key federation.ObjectKey) Status {
	o, s := judged(r, key)
	if o == nil {
		return s
	}
	g := gatewayOf(r, key)
	if g == nil || g.listeners == nil {
		s.tell(codeOf(string(gateway.RouteReasonNoMatchingParent)), "spec.parentRef",
			"there is no such Gateway in the cluster of the ListenerSet that the hub serves; the ListenerSet has no effect")
		return s
	}
	_, attached := g.routesAt(r)
	g.finish(attached)
	for _, set := range g.sets {
		if set.Key == key {
			return set.status
		}
	}
	return s
}
