package validation

import (
	"slices"
	"strings"

	api "istio.io/api/networking/v1alpha3"

	"isthmus.dev/isthmus/federation/config/schema"
)

// mesh is the name that means all sidecars where gateways are listed.
const mesh = "mesh"

var virtualServiceRules = []rule[*api.VirtualService]{
	{"", schema.Required, func(v *api.VirtualService) string {
		return when(len(v.GetHttp())+len(v.GetTls())+len(v.GetTcp()) == 0, "there are no routes: write http, tls or tcp")
	}},
	{"gateways", schema.Forbidden, func(v *api.VirtualService) string {
		return when(isDelegate(v) && len(v.GetGateways()) > 0,
			"an object without hosts is for others to delegate to: remove gateways, or write hosts")
	}},
	{"tls", schema.Forbidden, func(v *api.VirtualService) string {
		return when(isDelegate(v) && len(v.GetTls()) > 0, "an object without hosts is for others to delegate HTTP to: remove tls, or write hosts")
	}},
	{"tcp", schema.Forbidden, func(v *api.VirtualService) string {
		return when(isDelegate(v) && len(v.GetTcp()) > 0, "an object without hosts is for others to delegate HTTP to: remove tcp, or write hosts")
	}},
	{"hosts", schema.Invalid, func(v *api.VirtualService) string {
		return when(forSidecars(v) && slices.Contains(v.GetHosts(), "*"), "* is for gateways: name the hosts, or write gateways without mesh")
	}},
}

// isDelegate tells an object to which others delegate.
func isDelegate(v *api.VirtualService) bool { return len(v.GetHosts()) == 0 }

func forSidecars(v *api.VirtualService) bool {
	return len(v.GetGateways()) == 0 || slices.Contains(v.GetGateways(), mesh)
}

// VirtualService checks a spec of the kind.
func VirtualService(namespace string, v *api.VirtualService) []Problem {
	at := spec
	found := apply(at, v, virtualServiceRules)
	found = append(found, texts(at.field("hosts"), v.GetHosts(), virtualHost)...)
	found = append(found, repeated(at.field("hosts"), v.GetHosts())...)
	found = append(found, coveredHosts(at.field("hosts"), v.GetHosts())...)
	found = append(found, texts(at.field("gateways"), v.GetGateways(), gatewayName)...)
	found = append(found, exportTo(namespace, at.field("exportTo"), v.GetExportTo())...)
	found = append(found, each(at.field("http"), v.GetHttp(), httpRoute)...)
	found = append(found, each(at.field("http"), v.GetHttp(), func(at path, r *api.HTTPRoute) []Problem {
		return problem(at.field("delegate"), schema.Forbidden, when(isDelegate(v) && r.GetDelegate() != nil,
			"an object without hosts is delegated to and cannot delegate itself: remove delegate"))
	})...)
	found = append(found, unreachable(at.field("http"), v.GetHttp())...)
	found = append(found, unreachable(at.field("tls"), v.GetTls())...)
	found = append(found, unreachable(at.field("tcp"), v.GetTcp())...)
	found = append(found, claimsOfSidecars(at, v)...)
	found = append(found, each(at.field("tls"), v.GetTls(),
		func(at path, r *api.TLSRoute) []Problem { return tlsRoute(at, v.GetHosts(), r) })...)
	found = append(found, each(at.field("tcp"), v.GetTcp(), tcpRoute)...)
	found = append(found, subnetsAtGateways(at, v)...)
	return append(found, unusedGateways(at, v)...)
}

// subnetsAtGateways reports matches by address that are for gateways.
func subnetsAtGateways(at path, v *api.VirtualService) []Problem {
	check := func(at path, m connection) []Problem {
		gateways := m.GetGateways()
		if len(gateways) == 0 {
			gateways = v.GetGateways()
		}
		atGateways := slices.ContainsFunc(gateways, func(name string) bool { return name != mesh })
		return problem(at.field("destinationSubnets"), NoEffect, when(atGateways && len(m.GetDestinationSubnets()) > 0,
			"gateways do not tell connections apart by the address that they are for, so that this match never holds there: match sniHosts or port, or write gateways: [mesh]"))
	}
	found := each(at.field("tls"), v.GetTls(), func(at path, r *api.TLSRoute) []Problem {
		return each(at.field("match"), r.GetMatch(), func(at path, m *api.TLSMatchAttributes) []Problem { return check(at, m) })
	})
	return append(found, each(at.field("tcp"), v.GetTcp(), func(at path, r *api.TCPRoute) []Problem {
		return each(at.field("match"), r.GetMatch(), func(at path, m *api.L4MatchAttributes) []Problem { return check(at, m) })
	})...)
}

// unusedGateways reports matches for gateways to which the object is not bound.
func unusedGateways(at path, v *api.VirtualService) []Problem {
	return each(at.field("http"), v.GetHttp(), func(at path, r *api.HTTPRoute) []Problem {
		return each(at.field("match"), r.GetMatch(), func(at path, m *api.HTTPMatchRequest) []Problem {
			return each(at.field("gateways"), m.GetGateways(), func(at path, name string) []Problem {
				bound := slices.Contains(v.GetGateways(), name) || name == mesh && forSidecars(v) || isDelegate(v)
				return problem(at, NoEffect, when(!bound, "spec.gateways does not list %q, so that this match never holds: add it there", name))
			})
		})
	})
}

var tlsRouteRules = []rule[*api.TLSRoute]{
	{"match", schema.Required, func(r *api.TLSRoute) string {
		return when(len(r.GetMatch()) == 0, "a TLS route needs a match with sniHosts")
	}},
	{"route", schema.Required, func(r *api.TLSRoute) string {
		return when(len(r.GetRoute()) == 0, "a TLS route needs a destination")
	}},
}

func tlsRoute(at path, hosts []string, r *api.TLSRoute) []Problem {
	found := apply(at, r, tlsRouteRules)
	found = append(found, each(at.field("match"), r.GetMatch(), func(at path, m *api.TLSMatchAttributes) []Problem {
		found := problem(at.field("sniHosts"), schema.Required, when(len(m.GetSniHosts()) == 0, "name at least one host"))
		found = append(found, texts(at.field("sniHosts"), m.GetSniHosts(), func(name string) string { return sniHost(hosts, name) })...)
		return append(found, connectionMatch(at, m)...)
	})...)
	return append(found, destinations(at.field("route"), r.GetRoute())...)
}

// sniHost is a name of a client's TLS handshake; it must be one of the object's
// hosts or a part of one.
func sniHost(hosts []string, name string) string {
	if wrong := wildcardHostname(name); wrong != "" {
		return wrong
	}
	within := slices.ContainsFunc(hosts, func(host string) bool { return coversName(host, name) })
	return when(!within, "%q is not within spec.hosts: add it there", name)
}

// coversName reports whether a host, which may begin with *, matches a name.
func coversName(host, name string) bool {
	host, name = strings.ToLower(host), strings.ToLower(name)
	suffix, wild := strings.CutPrefix(host, "*")
	return host == name || wild && strings.HasSuffix(name, suffix)
}

func tcpRoute(at path, r *api.TCPRoute) []Problem {
	found := problem(at.field("route"), schema.Required, when(len(r.GetRoute()) == 0, "a TCP route needs a destination"))
	found = append(found, each(at.field("match"), r.GetMatch(), func(at path, m *api.L4MatchAttributes) []Problem {
		return append(connectionMatch(at, m), invalid(at.field("sourceSubnet"),
			when(m.GetSourceSubnet() != "" && subnet(m.GetSourceSubnet()) != "",
				"%q is neither an IP address nor a CIDR block", m.GetSourceSubnet()))...)
	})...)
	return append(found, destinations(at.field("route"), r.GetRoute())...)
}

// connection is what matches of TLS and TCP routes have in common.
type connection interface {
	GetDestinationSubnets() []string
	GetSourceNamespace() string
	GetPort() uint32
	GetSourceLabels() map[string]string
	GetGateways() []string
}

func connectionMatch(at path, m connection) []Problem {
	found := texts(at.field("destinationSubnets"), m.GetDestinationSubnets(), subnet)
	found = append(found, invalid(at.field("port"), optionalPort(m.GetPort()))...)
	found = append(found, labels(at.field("sourceLabels"), m.GetSourceLabels())...)
	found = append(found, sourceNamespace(at, m.GetSourceNamespace())...)
	return append(found, texts(at.field("gateways"), m.GetGateways(), gatewayName)...)
}

func sourceNamespace(at path, name string) []Problem {
	return invalid(at.field("sourceNamespace"), when(name != "" && !isLabel(name), "%q is not a namespace", name))
}

// weighted is a destination with a weight.
type weighted interface {
	GetDestination() *api.Destination
	GetWeight() int32
}

// destinations checks a split of traffic.
func destinations[T weighted](at path, list []T) []Problem {
	var total int64
	found := each(at, list, func(at path, to T) []Problem {
		total += int64(to.GetWeight())
		found := invalid(at.field("weight"), when(to.GetWeight() < 0, "%d is negative: write 0 or more", to.GetWeight()))
		return append(found, optional(at.field("destination"), to.GetDestination(), destination)...)
	})
	return append(found, invalid(at, when(len(list) > 1 && total == 0, "the weights of %d destinations are 0 in total: give each its weight",
		len(list)))...)
}

func destination(at path, to *api.Destination) []Problem {
	found := invalid(at.field("host"), destinationHost(to.GetHost()))
	if to.GetSubset() != "" {
		found = append(found, invalid(at.field("subset"), label(to.GetSubset()))...)
	}
	return append(found, optional(at.field("port"), to.GetPort(), portSelector)...)
}

func portSelector(at path, p *api.PortSelector) []Problem {
	return invalid(at.field("number"), port(p.GetNumber()))
}
