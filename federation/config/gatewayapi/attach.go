package gatewayapi

import (
	"fmt"
	"slices"

	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/kind"
)

// routeView is a route as Gateways see it.
type routeView struct {
	*federation.Object
	*routeKind
	parents  []gateway.ParentReference
	scope    gateway.GatewayDefaultScope    // of default Gateways
	hosts    []string                       // in lower case; none: those of the listeners
	requests func() []gateway.HTTPRouteRule // the rules of a route for requests; nil: it is for connections or datagrams
	refs     []backendRef                   // of a route for connections or datagrams
	unused   []string                       // fields without an effect
	atCaller bool                           // as sidecars have it
}

// backendRef is a backend of connections.
type backendRef struct {
	gateway.BackendRef
	field string
}

// readRoute reads a route of any kind; nil for one that is none.
func readRoute(o *federation.Object) *routeView {
	v := &routeView{Object: o}
	for i := range routeKinds {
		v.routeKind = &routeKinds[i]
		if v.Kind == o.Key.Of() && v.read(v, o.Spec) {
			return v
		}
	}
	return nil
}

// attaches notes where the route attaches.
func (v *routeView) attaches(to gateway.CommonRouteSpec, hosts []gateway.Hostname) {
	v.parents, v.scope = to.ParentRefs, to.UseDefaultGateways
	for _, host := range hosts {
		v.hosts = append(v.hosts, string(host))
	}
}

// http are the rules of a route for requests.
func (v *routeView) http() []gateway.HTTPRouteRule {
	if !v.isHTTP() {
		return nil
	}
	return v.requests()
}

// connections notes a rule about connections; only the first has an effect.
func (v *routeView) connections(i int, refs []gateway.BackendRef) {
	field := itemField("spec.rules", i)
	if i > 0 {
		v.unused = append(v.unused, field)
		return
	}
	for j, ref := range refs {
		v.refs = append(v.refs, backendRef{ref, itemField(field+".backendRefs", j)})
	}
}

func (v *routeView) isHTTP() bool { return v.requests != nil }

// parentKey is the Gateway or ListenerSet that a reference means; false for a parent of another kind.
func (v *routeView) parentKey(ref gateway.ParentReference) (federation.ObjectKey, bool) {
	key := GatewayNamed(v.Key, ref.Namespace, ref.Name)
	if ref.Kind != nil {
		key.Kind = string(*ref.Kind)
	}
	ours := ref.Group == nil || *ref.Group == gateway.GroupName
	return key, ours && (key.Kind == federation.GatewayAPI.Gateway.Name || key.Kind == federation.GatewayAPI.ListenerSet.Name)
}

// attachment is a listener to which a route attaches, and the hosts that it has there.
type attachment struct {
	at    int // of the listeners of the Gateway
	hosts []string
}

// attach finds the listeners of the parent to which the reference attaches the route.
func (v *routeView) attach(g *gatewayView, parent federation.ObjectKey, ref gateway.ParentReference,
	field string,
) (found []attachment, why faults) {
	var named, allowed bool
	for i, l := range g.listeners {
		if l.of != parent || ref.SectionName != nil && *ref.SectionName != "" && *ref.SectionName != l.Name ||
			ref.Port != nil && *ref.Port != l.Port {
			continue
		}
		named = true
		if !v.allowedAt(l) {
			continue
		}
		allowed = true
		if hosts := v.hostsAt(l); len(hosts) > 0 {
			found = append(found, attachment{i, hosts})
		}
	}
	switch {
	case len(found) > 0:
	case !named:
		why.add(accepted, string(gateway.RouteReasonNoMatchingParent), field, "no listener of the %s has this name and port", parent.Title())
	case !allowed:
		why.add(accepted, string(gateway.RouteReasonNotAllowedByListeners), field,
			"the listeners of the %s do not allow a %s of namespace %s; see allowedRoutes of the listeners",
			parent.Title(), v.Key.Kind, v.Key.Namespace)
	default:
		why.add(accepted, string(gateway.RouteReasonNoMatchingListenerHostname), field,
			"no listener of the %s has a hostname of the route", parent.Title())
	}
	return found, why
}

// allowedAt reports whether the listener allows the kind and the namespace of the route.
func (v *routeView) allowedAt(l *listener) bool {
	return slices.Contains(l.kinds, v.Key.Kind) && l.namespaces.selects(l.of.Namespace, v.Key.Namespace)
}

// hostsAt are the hosts that the route has at the listener.
func (v *routeView) hostsAt(l *listener) (hosts []string) {
	if len(v.hosts) == 0 {
		return []string{l.host}
	}
	for _, host := range v.hosts {
		if both := common(l.host, host); both != "" && !slices.Contains(hosts, both) {
			hosts = append(hosts, both)
		}
	}
	return hosts
}

// attachments are where the route attaches to the Gateway, by any of its references.
func (v *routeView) attachments(g *gatewayView) (all []attachment) {
	for i, ref := range v.parents {
		key, is := v.parentKey(ref)
		if !is || key != g.Key && !hasSet(g, key) {
			continue
		}
		found, _ := v.attach(g, key, ref, parentField(i))
		for _, a := range found {
			if !slices.ContainsFunc(all, func(b attachment) bool { return a.at == b.at }) {
				all = append(all, a)
			}
		}
	}
	return all
}

func parentField(i int) string { return fmt.Sprintf("spec.parentRefs[%d]", i) }

// statusOf is the status of a route.
func statusOf(r *federation.Reader, v *routeView) Status {
	s := Status{Object: v.Key, Digest: v.Digest}
	var backends faults
	v.backendFaults(r, &s, &backends)
	for i, ref := range v.parents {
		field := parentField(i)
		if service, is := v.serviceOf(ref); is {
			s.Parents = append(s.Parents, v.meshStatus(r, ref, service, field, &s))
			continue
		}
		key, is := v.parentKey(ref)
		if !is {
			s.unsupported(field, "for a %s, parents of the kind %s are not supported", v.Key.Kind, kindOf(ref))
			continue
		}
		g := gatewayOf(r, key)
		switch {
		case g == nil:
			s.tell(codeOf(string(gateway.RouteReasonNoMatchingParent)), field, "there is no %s of the route's cluster; the reference has no effect",
				key.Title())
			continue
		case g.listeners == nil:
			s.unsupported(field, "the hub does not serve the Gateway %s", g.Key.Namespace+"/"+g.Key.Name)
			continue
		}
		parent := key.Namespace + "/" + key.Name
		if ref.SectionName != nil && *ref.SectionName != "" {
			parent += "/" + string(*ref.SectionName)
		}
		_, why := v.attach(g, key, ref, field)
		s.Parents = append(s.Parents, ParentStatus{parent, ref, g.class, append(why, backends...).conditions(accepted, resolved)})
	}
	if v.scope != "" {
		s.unsupported("spec.useDefaultGateways", kind.NoDefaultGateways)
	}
	if len(v.parents) == 0 {
		s.unsupported("spec.parentRefs", "a route without parentRefs attaches to no Gateway and has no effect")
	}
	return s
}

func kindOf(ref gateway.ParentReference) string {
	if ref.Kind != nil {
		return string(*ref.Kind)
	}
	return federation.GatewayAPI.Gateway.Name
}
