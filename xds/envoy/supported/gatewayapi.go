package supported

import (
	"slices"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/kind"
)

// Objects of the Gateway API become Gateways and VirtualServices, and proxies get those. What translates
// them reports what has no effect.
var (
	_ = add(row{kind: federation.GatewayAPI.GatewayClass, derived: true, table: &table{
		fields: []string{"controllerName"}, texts: []string{"description"},
		refused: map[string]string{"parametersRef": kind.NoClassParameters},
	}})
	_ = add(row{kind: federation.GatewayAPI.Gateway, derived: true, table: gatewayAPIGateway()})
	_ = add(row{kind: federation.GatewayAPI.ListenerSet, derived: true, table: &table{
		fields: append(listenerFields(), "parentRef"),
	}})
	_ = add(row{kind: federation.GatewayAPI.ReferenceGrant, derived: true, table: &table{fields: []string{"from", "to"}}})
	_ = add(row{kind: federation.GatewayAPI.BackendTLSPolicy, derived: true, table: &table{
		fields: []string{"targetRefs", "validation"}, refused: map[string]string{"options": kind.NoTLSOptions},
	}})
	_ = add(row{kind: federation.GatewayAPI.HTTPRoute, derived: true, table: requestRoute(
		[]string{"rules.timeouts", "rules.retry"}, "cors", "requestRedirect", "urlRewrite")})
	_ = add(row{kind: federation.GatewayAPI.GRPCRoute, derived: true, table: requestRoute(nil)})
	_ = add(row{kind: federation.GatewayAPI.TLSRoute, derived: true, table: connectionRoute("hostnames")})
	_ = add(row{kind: federation.GatewayAPI.TCPRoute, derived: true, table: connectionRoute()})
	_ = add(row{kind: federation.GatewayAPI.UDPRoute, derived: true, table: connectionRoute()})
)

const noExternalAuth = "MeshSettings declare the servers that authorize requests, not routes, and requests get 500; use an AuthorizationPolicy with the action CUSTOM"

const noExtension = "filters of other groups are not supported; requests get 500"

func gatewayAPIGateway() *table {
	return &table{
		fields: append(listenerFields(), "gatewayClassName", "allowedListeners", "tls.frontend", "tls.backend"),
		refused: map[string]string{
			"defaultScope":   kind.NoDefaultGateways,
			"addresses":      "the hub assigns no addresses; expose the proxies of the Gateway by a Service",
			"infrastructure": "the hub deploys no proxies; deploy them with the label " + federation.GatewayLabel,
		},
	}
}

func listenerFields() []string {
	return below("listeners", "name", "port", "protocol", "hostname", "allowedRoutes", "tls.mode", "tls.certificateRefs", "tls.options")
}

// requestRoute is the table of routes of requests, with fields and filters that not each of their kinds has.
func requestRoute(fields []string, filters ...string) *table {
	filters = append(filters, "type", "requestHeaderModifier", "responseHeaderModifier", "requestMirror")
	t := &table{
		fields:  append(fields, "parentRefs", "hostnames", "rules.matches"),
		texts:   []string{"rules.name"},
		refused: map[string]string{"rules.sessionPersistence": kind.NoPersistence, "useDefaultGateways": kind.NoDefaultGateways},
	}
	for _, at := range []string{"rules.filters", "rules.backendRefs.filters"} {
		t.fields = append(t.fields, below(at, filters...)...)
		t.refused[at+".extensionRef"] = noExtension
		if slices.Contains(filters, "cors") {
			t.refused[at+".externalAuth"] = noExternalAuth
		}
	}
	t.fields = append(t.fields, below("rules.backendRefs", "group", "kind", "name", "namespace", "port", "weight")...)
	return t
}

// connectionRoute is the table of routes of connections and datagrams.
func connectionRoute(fields ...string) *table {
	return &table{
		fields: append(fields, "parentRefs", "rules.backendRefs"), texts: []string{"rules.name"},
		refused: map[string]string{"useDefaultGateways": kind.NoDefaultGateways},
	}
}

// below are the paths of fields of the field.
func below(field string, names ...string) (paths []string) {
	for _, name := range names {
		paths = append(paths, join(field, name))
	}
	return paths
}
