package kind

import (
	"strings"

	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"isthmus.dev/isthmus/federation"
)

// The kinds of the Gateway API.

// NoClassParameters, NoTLSOptions, NoDefaultGateways and NoPersistence are why fields of objects of the Gateway API have no effect.
const (
	NoClassParameters = "the hub deploys no proxies, and its classes have no parameters"
	NoTLSOptions      = "options of TLS are those of implementations, and the hub does not have this one"
	NoDefaultGateways = "routes attach only to Gateways that they name, so that no other Gateway takes them unnoticed; name the Gateway in parentRefs"
	NoPersistence     = "sessions name an endpoint by its address, and proxies do not have those of other networks; use consistentHash of a DestinationRule"
)

var routeColumns = []Column{{"HOSTNAMES", "spec.hostnames"}, {"PARENTS", "spec.parentRefs[].name"}}

var _ = add(of[gateway.HTTPRouteSpec]{
	kind: federation.GatewayAPI.HTTPRoute,
	names: func(d Decoded, s *gateway.HTTPRouteSpec) []string {
		names := d.route(s.Hostnames, s.ParentRefs)
		for _, rule := range s.Rules {
			for _, ref := range rule.BackendRefs {
				names = append(names, d.backend(ref.BackendObjectReference))
			}
		}
		return names
	},
	columns: routeColumns,
})

var _ = add(of[gateway.GRPCRouteSpec]{
	kind: federation.GatewayAPI.GRPCRoute,
	names: func(d Decoded, s *gateway.GRPCRouteSpec) []string {
		names := d.route(s.Hostnames, s.ParentRefs)
		for _, rule := range s.Rules {
			for _, ref := range rule.BackendRefs {
				names = append(names, d.backend(ref.BackendObjectReference))
			}
		}
		return names
	},
	columns: routeColumns,
})

var _ = add(of[gateway.TLSRouteSpec]{
	kind: federation.GatewayAPI.TLSRoute,
	names: func(d Decoded, s *gateway.TLSRouteSpec) []string {
		names := d.route(s.Hostnames, s.ParentRefs)
		for _, rule := range s.Rules {
			names = append(names, d.backends(rule.BackendRefs)...)
		}
		return names
	},
	columns: routeColumns,
})

var _ = add(of[gateway.TCPRouteSpec]{
	kind: federation.GatewayAPI.TCPRoute,
	names: func(d Decoded, s *gateway.TCPRouteSpec) []string {
		names := d.route(nil, s.ParentRefs)
		for _, rule := range s.Rules {
			names = append(names, d.backends(rule.BackendRefs)...)
		}
		return names
	},
})

var _ = add(of[gateway.UDPRouteSpec]{
	kind: federation.GatewayAPI.UDPRoute,
	names: func(d Decoded, s *gateway.UDPRouteSpec) []string {
		names := d.route(nil, s.ParentRefs)
		for _, rule := range s.Rules {
			names = append(names, d.backends(rule.BackendRefs)...)
		}
		return names
	},
})

var _ = add(of[gateway.ListenerSetSpec]{
	kind: federation.GatewayAPI.ListenerSet,
	names: func(d Decoded, s *gateway.ListenerSetSpec) []string {
		namespace := d.Key.Namespace
		if s.ParentRef.Namespace != nil {
			namespace = string(*s.ParentRef.Namespace)
		}
		return []string{GatewayName(namespace, string(s.ParentRef.Name))}
	},
	columns: []Column{{"PARENT", "spec.parentRef.name"}, {"LISTENERS", "spec.listeners[].name"}},
})

var _ = add(of[gateway.GatewaySpec]{
	kind:    federation.GatewayAPI.Gateway,
	columns: []Column{{"CLASS", "spec.gatewayClassName"}, {"LISTENERS", "spec.listeners[].name"}},
})

var (
	_ = add(of[gateway.GatewayClassSpec]{kind: federation.GatewayAPI.GatewayClass})
	_ = add(of[gateway.ReferenceGrantSpec]{kind: federation.GatewayAPI.ReferenceGrant})
	_ = add(of[gateway.BackendTLSPolicySpec]{kind: federation.GatewayAPI.BackendTLSPolicy})
)

// isParent reports whether routes attach to objects of the kind.
func isParent(name string) bool {
	return name == federation.GatewayAPI.Gateway.Name || name == federation.GatewayAPI.ListenerSet.Name
}

// route names the hosts of a route, the gateways that it attaches to, and the
// services for which it speaks.
func (d Decoded) route(hosts []gateway.Hostname, parents []gateway.ParentReference) []string {
	var out []string
	for _, host := range hosts {
		out = append(out, strings.ToLower(string(host)))
	}
	for _, p := range parents {
		namespace := d.Key.Namespace
		if p.Namespace != nil {
			namespace = string(*p.Namespace)
		}
		switch {
		case p.Kind == nil || isParent(string(*p.Kind)):
			out = append(out, GatewayName(namespace, string(p.Name)))
		case *p.Kind == "Service":
			out = append(out, string(federation.ResolveHostIn(d.Domain, string(p.Name), namespace)))
		}
	}
	return out
}

// backends are the names of the Services to which references lead.
func (d Decoded) backends(refs []gateway.BackendRef) []string {
	var names []string
	for _, ref := range refs {
		names = append(names, d.backend(ref.BackendObjectReference))
	}
	return names
}

// backend is the name of the Service to which a reference leads, or "".
func (d Decoded) backend(ref gateway.BackendObjectReference) string {
	if ref.Group != nil && *ref.Group != "" || ref.Kind != nil && *ref.Kind != "Service" {
		return ""
	}
	namespace := d.Key.Namespace
	if ref.Namespace != nil && *ref.Namespace != "" {
		namespace = string(*ref.Namespace)
	}
	return BackendName(federation.ResolveHost(string(ref.Name), namespace))
}
