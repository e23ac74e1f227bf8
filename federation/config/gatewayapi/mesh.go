package gatewayapi

import (
	"slices"
	"time"

	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/internal/text"
)

// A route whose parent is a Service acts at the sidecars of callers (ADR 165). One in the
// namespace of the Service is for all callers, and one of another namespace for the callers of
// its own namespace, for which it comes before others. The routes of one namespace for one
// Service are one VirtualService, which the oldest of them gives.

// meshKinds are the kinds of routes that sidecars can have.
var meshKinds = []federation.Kind{httpKind, grpcKind, tcpKind}

// serviceOf is the Service that a reference means; false for one that means something else.
func (v *routeView) serviceOf(ref gateway.ParentReference) (federation.ServiceKey, bool) {
	if ref.Group == nil || *ref.Group != "" || ref.Kind == nil || *ref.Kind != "Service" || !slices.Contains(meshKinds, v.Key.Of()) {
		return federation.ServiceKey{}, false
	}
	namespace := v.Key.Namespace
	if ref.Namespace != nil && *ref.Namespace != "" {
		namespace = string(*ref.Namespace)
	}
	return federation.ServiceKey{Hostname: federation.ResolveHost(string(ref.Name), namespace), Namespace: namespace}, true
}

// inMesh is the route as sidecars have it. They may send requests to each service of the mesh,
// without a ReferenceGrant, and do what BackendTLSPolicies say of gateways no more than for
// other requests.
func (v *routeView) inMesh() *routeView {
	own := *v
	own.mesh = true
	return &own
}

// meshView is a Service as the routes of one namespace see it.
type meshView struct {
	service federation.ServiceKey
	ports   []uint16     // of the service
	routes  []*routeView // that have an effect, the oldest first
	all     []*routeView
}

// meshFor are the routes for the Service of the namespace and the cluster of a route.
func meshFor(r *federation.Reader, v *routeView, service federation.ServiceKey) *meshView {
	m := &meshView{service: service}
	if svc, exists := r.Spec(service); exists {
		for _, p := range svc.Ports {
			m.ports = append(m.ports, p.Number)
		}
	}
	for _, of := range meshKinds {
		for o := range r.Objects().Named(of, string(service.Hostname)) {
			if o.Key.Cluster != v.Key.Cluster || o.Key.Namespace != v.Key.Namespace {
				continue
			}
			if other := readRoute(o); other != nil && len(m.targets(other)) > 0 {
				m.all = append(m.all, other.inMesh())
			}
		}
	}
	slices.SortFunc(m.all, func(a, b *routeView) int { return a.CompareAge(b.Object) })
	m.settle()
	return m
}

// settle leaves the routes that can be used together: HTTPRoutes or GRPCRoutes, whichever has
// the oldest, and the oldest TCPRoute.
func (m *meshView) settle() {
	for _, v := range m.all {
		taken := slices.ContainsFunc(m.routes, func(o *routeView) bool {
			return v.isHTTP() == o.isHTTP() && (v.Key.Kind != o.Key.Kind || !v.isHTTP())
		})
		if !taken {
			m.routes = append(m.routes, v)
		}
	}
}

// anyPort means all ports of a Service.
const anyPort = 0

// targets are the ports that the references of a route name, each once; anyPort is one without.
func (m *meshView) targets(v *routeView) (ports []uint16) {
	for _, ref := range v.parents {
		if service, is := v.serviceOf(ref); !is || service != m.service {
			continue
		}
		port := uint16(anyPort)
		if ref.Port != nil {
			port = uint16(*ref.Port)
		}
		if !slices.Contains(ports, port) && (port == anyPort && len(m.ports) > 0 || slices.Contains(m.ports, port)) {
			ports = append(ports, port)
		}
	}
	return ports
}

// meshObjects are the VirtualServices that the route gives, as the oldest of those of its
// namespace for a Service.
func (v *routeView) meshObjects(r *federation.Reader) (all []*config.Object) {
	var seen []federation.ServiceKey
	for _, ref := range v.parents {
		service, is := v.serviceOf(ref)
		if !is || slices.Contains(seen, service) {
			continue
		}
		seen = append(seen, service)
		if m := meshFor(r, v, service); len(m.routes) > 0 && m.routes[0].Key == v.Key {
			all = append(all, m.object(r))
		}
	}
	slices.SortFunc(all, func(a, b *config.Object) int { return a.Key.Compare(b.Key) })
	return all
}

// object is the VirtualService. One without a time of creation comes before others.
func (m *meshView) object(r *federation.Reader) *config.Object {
	by := *m.routes[0].Object
	spec := object{"hosts": []any{m.service.Hostname}, "gateways": []any{"mesh"}}
	if by.Key.Namespace != m.service.Namespace {
		spec["exportTo"] = []any{"."}
		by.Created = time.Time{}
	}
	if http := m.http(r); len(http) > 0 {
		spec["http"] = http
	}
	if tcp := m.tcp(r); len(tcp) > 0 {
		spec["tcp"] = tcp
	}
	return derived(&by, virtualServices, nameStart+text.Label("mesh."+string(m.service.Hostname), 63-len(nameStart)), spec)
}

// http are the matches of all routes for requests, and what happens at ports without a route:
// their requests go to the service.
func (m *meshView) http(r *federation.Reader) (all []any) {
	var items []item
	var ports []uint16
	for _, v := range m.routes {
		if !v.isHTTP() {
			continue
		}
		for _, port := range m.targets(v) {
			t := &httpTranslation{reader: r, route: v, status: &Status{}, faults: &faults{}}
			items = append(items, atPort(t.rules(v.http, nil), port)...)
			ports = append(ports, port)
		}
	}
	if len(items) == 0 && len(ports) == 0 {
		return nil
	}
	slices.SortStableFunc(items, item.compare)
	for _, i := range items {
		all = append(all, i.fields)
	}
	for _, port := range m.ports {
		if !slices.Contains(ports, anyPort) && !slices.Contains(ports, port) {
			to := object{"destination": backend{host: string(m.service.Hostname), port: int32(port)}.destination()}
			all = append(all, object{"match": []any{object{"port": port}}, "route": []any{to}})
		}
	}
	return all
}

// atPort has the matches be for a port of the service.
func atPort(items []item, port uint16) []item {
	if port == anyPort {
		return items
	}
	for _, i := range items {
		for _, match := range i.fields["match"].([]any) {
			match.(object)["port"] = port
		}
	}
	return items
}

// tcp are the routes for connections.
func (m *meshView) tcp(r *federation.Reader) (all []any) {
	for _, v := range m.routes {
		if v.isHTTP() {
			continue
		}
		for _, port := range m.targets(v) {
			route := object{"route": v.splits(r, &faults{})}
			if port != anyPort {
				route["match"] = []any{object{"port": port}}
			}
			all = append(all, route)
		}
	}
	return all
}

// meshStatus is how the route is for a Service.
func (v *routeView) meshStatus(r *federation.Reader, ref gateway.ParentReference, service federation.ServiceKey, field string, s *Status) ParentStatus {
	m := meshFor(r, v, service)
	var why, backends faults
	v.inMesh().backendFaults(r, &Status{}, &backends)
	if !m.has(ref) {
		why.add(accepted, string(gateway.RouteReasonNoMatchingParent), field, "there is no service %s, or it has no such port", service.Hostname)
	} else if !slices.ContainsFunc(m.routes, func(o *routeView) bool { return o.Key == v.Key }) {
		s.tell(codeTaken, field, "for the service %s the route has no effect: another kind of route of the namespace, or another TCPRoute, is older", service.Hostname)
	}
	if len(v.hosts) > 0 {
		s.unsupported("spec.hostnames", "hostnames have no effect where the parent is a Service")
	}
	parent := service.Namespace + "/" + string(ref.Name)
	return ParentStatus{parent, ref, string(controllers[0]), append(why, backends...).conditions(accepted, resolved)}
}

// has reports whether the Service exists, with the port that a reference names.
func (m *meshView) has(ref gateway.ParentReference) bool {
	if ref.Port == nil {
		return len(m.ports) > 0
	}
	return slices.Contains(m.ports, uint16(*ref.Port))
}
