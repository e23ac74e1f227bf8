package gatewayapi

import (
	"fmt"
	"slices"

	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"isthmus.dev/isthmus/federation"
)

// backend is where requests go: a port of a service, with a weight.
type backend struct {
	host string // "": it cannot be used, and its requests get 500
	port int32
	// policy is the BackendTLSPolicy of the port; "": there is none.
	policy string
}

func (b backend) destination() object {
	return object{"host": b.host, "port": object{"number": b.port}}
}

// backendKind is a kind of backends.
type backendKind struct {
	federation.Kind
	// service is the one that an object of the kind means; nil: its name is a hostname, which
	// all may use.
	service func(federation.ObjectKey) federation.ServiceKey
}

func backendKinds() []backendKind {
	return []backendKind{
		{federation.Kind{Name: "Service"}, federation.ExportedService},
		{federation.ServiceImportKind, federation.ClusterSetService},
		{federation.Kind{Group: federation.ServiceEntryKind.Group, Name: "Hostname"}, nil},
	}
}

// backendKindOf is the kind of a reference; false: there are no such backends.
func backendKindOf(ref gateway.BackendObjectReference) (kind federation.Kind, of backendKind, is bool) {
	kind.Name = "Service"
	if ref.Group != nil {
		kind.Group = string(*ref.Group)
	}
	if ref.Kind != nil {
		kind.Name = string(*ref.Kind)
	}
	all := backendKinds()
	at := slices.IndexFunc(all, func(k backendKind) bool { return k.Kind == kind })
	if at < 0 {
		return kind, backendKind{}, false
	}
	return kind, all[at], true
}

// ports are those of the services that have the host which an object of the kind means.
func (k backendKind) ports(r *federation.Reader, of federation.ObjectKey) (host federation.Hostname, ports []federation.ServicePort) {
	if k.service != nil {
		key := k.service(of)
		if svc, exists := r.Spec(key); exists {
			ports = svc.Ports
		}
		return key.Hostname, ports
	}
	host = federation.Hostname(of.Name)
	for _, svc := range r.ByHostname(host) {
		ports = append(ports, svc.Ports...)
	}
	return host, ports
}

// resolve finds the service of a reference. What is wrong is added to the faults.
func (v *routeView) resolve(r *federation.Reader, ref gateway.BackendObjectReference, field string, why *faults) backend {
	refuse := func(reason gateway.RouteConditionReason, format string, args ...any) backend {
		why.add(resolved, string(reason), field, format+"; "+v.fate, args...)
		return backend{}
	}
	name, namespace := string(ref.Name), namespaceOf(v.Key, ref.Namespace)
	kind, of, is := backendKindOf(ref)
	switch {
	case !is:
		return refuse(gateway.RouteReasonInvalidKind, "backends of the kind %s are not supported; use a Service or a ServiceImport",
			federation.Quote(kind.Name))
	case of.service != nil && !v.atCaller && namespace != v.Key.Namespace && !permitted(r, v.Key, namespace, kind.Group, kind.Name, name):
		return refuse(gateway.RouteReasonRefNotPermitted, "no ReferenceGrant of namespace %s lets a %s of namespace %s use the %s %s", namespace,
			v.Key.Kind, v.Key.Namespace, kind.Name, name)
	case ref.Port == nil:
		return refuse(gateway.RouteReasonBackendNotFound, "the backend %s has no port", name)
	}
	host, ports := of.ports(r, federation.ObjectKey{Namespace: namespace, Name: name})
	if len(ports) == 0 {
		return refuse(gateway.RouteReasonBackendNotFound, "there is no service %s", host)
	}
	b := backend{host: string(host), port: *ref.Port}
	at := slices.IndexFunc(ports, func(p federation.ServicePort) bool {
		return int32(p.Number) == b.port && (!v.datagrams || p.Protocol.Transport() == federation.TransportUDP)
	})
	if at < 0 {
		return refuse(gateway.RouteReasonBackendNotFound, "the service %s has no port %d%s", host, b.port, needs(v))
	}
	if kind.Name != "Service" || v.atCaller || v.datagrams {
		return b
	}
	policy := policyFor(r, namespace, name, ports[at].Name)
	if policy == nil {
		return b
	}
	b.policy = policy.Key.Name
	if policy.tls(r, &Status{}, &faults{}) == nil {
		return refuse(gateway.RouteReasonUnsupportedProtocol,
			"gateways cannot speak TLS as the BackendTLSPolicy %s/%s wants, and send nothing in plain text; see its status",
			namespace, policy.Key.Name)
	}
	return b
}

// needs is what a port must be for the route.
func needs(v *routeView) string {
	if v.datagrams {
		return " of the protocol UDP"
	}
	return ""
}

func weightOf(weight *int32) int64 {
	if weight == nil {
		return 1
	}
	return int64(max(*weight, 0))
}

// backendFaults adds what is wrong with the backends and rules of the route.
func (v *routeView) backendFaults(r *federation.Reader, s *Status, why *faults) {
	t := &httpTranslation{reader: r, route: v, status: s, faults: why}
	t.rules(v.http(), nil)
	v.splits(r, why)
	for _, field := range v.unused {
		s.unsupported(field, "only the first rule has an effect")
	}
	if v.datagrams {
		v.reportShares(s)
	}
}

// reportShares says which backends get no datagrams: those of a port go to one.
func (v *routeView) reportShares(s *Status) {
	var first string
	for _, ref := range v.refs {
		switch {
		case weightOf(ref.Weight) == 0:
		case first == "":
			first = ref.field
		default:
			s.unsupported(ref.field, "datagrams go to one backend, %s; this one gets none", first)
		}
	}
}

// splits are the destinations of connections. The share of backends that cannot be used is
// closed.
func (v *routeView) splits(r *federation.Reader, why *faults) (all []any) {
	return v.splitsTo(r, why, func(backendRef, backend) bool { return true })
}

// splitsTo are the destinations of connections. The share of backends that may not be used is
// closed, too.
func (v *routeView) splitsTo(r *federation.Reader, why *faults, may func(backendRef, backend) bool) (all []any) {
	for _, ref := range v.refs {
		b := v.resolve(r, ref.BackendObjectReference, ref.field, why)
		if weightOf(ref.Weight) == 0 {
			continue
		}
		if b.host == "" || !may(ref, b) {
			b = backend{host: federation.RefusedHost, port: 1}
		}
		all = append(all, object{"destination": b.destination(), "weight": weightOf(ref.Weight)})
	}
	if len(all) == 0 {
		all = append(all, object{"destination": backend{host: federation.RefusedHost, port: 1}.destination()})
	}
	return all
}

func itemField(list string, i int) string { return fmt.Sprintf("%s[%d]", list, i) }
