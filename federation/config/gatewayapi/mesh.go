package gatewayapi

import (
	"iter"
	"slices"

	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"isthmus.dev/isthmus/federation"
)

// A route whose parent is a Service acts at the sidecars of callers (ADR 165). One in the
// namespace of the Service is for all callers, and one of another namespace for the callers of
// its own namespace, for which it comes before others. The routes of one namespace for one
// Service are one VirtualService, which the oldest of them gives.

// meshKinds are the kinds of routes that sidecars can have.
var meshKinds = routesOf(func(k routeKind) bool { return k.mesh })

// serviceOf is the Service that a reference means; false for one that means something else.
func (v *routeView) serviceOf(ref gateway.ParentReference) (federation.ServiceKey, bool) {
	if ref.Group == nil || *ref.Group != "" || ref.Kind == nil || *ref.Kind != "Service" || !v.mesh {
		return federation.ServiceKey{}, false
	}
	namespace := namespaceOf(v.Key, ref.Namespace)
	return federation.ServiceKey{Hostname: federation.ResolveHost(string(ref.Name), namespace), Namespace: namespace}, true
}

// inMesh is the route as sidecars have it. They may send requests to each service of the mesh,
// without a ReferenceGrant, and do what BackendTLSPolicies say of gateways no more than for
// other requests.
func inMesh(v *routeView) *routeView {
	own := *v
	own.atCaller = true
	return &own
}

// meshView is a Service as the routes of one namespace and one cluster see it.
type meshView struct {
	reader  *federation.Reader
	of      federation.ObjectKey // a route of the namespace and the cluster
	service federation.ServiceKey
	ports   []federation.ServicePort
}

func meshFor(r *federation.Reader, v *routeView, service federation.ServiceKey) *meshView {
	m := &meshView{reader: r, of: v.Key, service: service}
	if svc, exists := r.Spec(service); exists {
		m.ports = svc.Ports
	}
	return m
}

// candidates are the routes of the kinds with the Service as parent that are older than the
// object, or with nil all of them.
func (m *meshView) candidates(than *federation.Object, kinds ...federation.Kind) iter.Seq[*routeView] {
	return func(yield func(*routeView) bool) {
		for _, of := range kinds {
			for o := range m.reader.Objects().Named(of, string(m.service.Hostname)) {
				if o.Key.Cluster != m.of.Cluster || o.Key.Namespace != m.of.Namespace || than != nil && !o.Older(than) {
					continue
				}
				if v := readRoute(o); v != nil && len(m.targets(v)) > 0 && !yield(v) {
					return
				}
			}
		}
	}
}

// hasOlder reports whether a route of the kinds is older than the object.
func (m *meshView) hasOlder(than *federation.Object, kinds ...federation.Kind) bool {
	for range m.candidates(than, kinds...) {
		return true
	}
	return false
}

// taken reports whether the route has no effect beside others: of HTTPRoutes and GRPCRoutes,
// those of the kind have one that has the oldest, and of TCPRoutes the oldest.
func (m *meshView) taken(v *routeView) bool {
	if !v.isHTTP() {
		return m.hasOlder(v.Object, federation.GatewayAPI.TCPRoute)
	}
	rival := federation.GatewayAPI.HTTPRoute
	if v.Key.Of() == federation.GatewayAPI.HTTPRoute {
		rival = federation.GatewayAPI.GRPCRoute
	}
	var oldest *federation.Object
	for other := range m.candidates(v.Object, rival) {
		if oldest == nil || other.Older(oldest) {
			oldest = other.Object
		}
	}
	return oldest != nil && !m.hasOlder(oldest, v.Key.Of())
}

// used are the routes that have an effect, the oldest first.
func (m *meshView) used() (all []*routeView) {
	for v := range m.candidates(nil, meshKinds...) {
		all = append(all, v)
	}
	slices.SortFunc(all, func(a, b *routeView) int { return a.CompareAge(b.Object) })
	oldest := map[bool]*routeView{}
	return slices.DeleteFunc(all, func(v *routeView) bool {
		first := oldest[v.isHTTP()]
		if first == nil {
			oldest[v.isHTTP()] = v
			return false
		}
		return first.Key.Kind != v.Key.Kind || !v.isHTTP()
	})
}

// anyPort means all ports of a Service.
const anyPort = 0

// targets are the ports to which the references of a route lead, each once; anyPort is one
// without a port or a name of it.
func (m *meshView) targets(v *routeView) (ports []uint16) {
	for _, ref := range v.parents {
		if service, is := v.serviceOf(ref); !is || service != m.service {
			continue
		}
		if port, exists := m.target(ref); exists && !slices.Contains(ports, port) {
			ports = append(ports, port)
		}
	}
	return ports
}

// target is the port to which a reference leads; false: the Service does not exist, or has none.
func (m *meshView) target(ref gateway.ParentReference) (uint16, bool) {
	named := ref.SectionName != nil && *ref.SectionName != ""
	if ref.Port == nil && !named {
		return anyPort, len(m.ports) > 0
	}
	at := slices.IndexFunc(m.ports, func(p federation.ServicePort) bool {
		return (ref.Port == nil || int32(p.Number) == *ref.Port) && (!named || p.Name == string(*ref.SectionName))
	})
	if at < 0 {
		return 0, false
	}
	return m.ports[at].Number, true
}

// meshStatus is how the route is for a Service.
func (v *routeView) meshStatus(r *federation.Reader, ref gateway.ParentReference, service federation.ServiceKey,
	field string, s *Status,
) ParentStatus {
	m := meshFor(r, v, service)
	var why, backends faults
	inMesh(v).backendFaults(r, &Status{}, &backends)
	if _, exists := m.target(ref); !exists {
		why.add(accepted, string(gateway.RouteReasonNoMatchingParent), field, "there is no service %s, or it has no such port", service.Hostname)
	} else if m.taken(v) {
		s.tell(codeTaken, field,
			"for the service %s the route has no effect: another kind of route of the namespace, or another TCPRoute, is older", service.Hostname)
	}
	if len(v.hosts) > 0 {
		s.unsupported("spec.hostnames", "hostnames have no effect where the parent is a Service")
	}
	parent := service.Namespace + "/" + string(ref.Name)
	return ParentStatus{parent, ref, string(controllers[0]), append(why, backends...).conditions(accepted, resolved)}
}
