package validation

import (
	"slices"
	"strings"

	api "istio.io/api/networking/v1alpha3"

	"isthmus.dev/isthmus/federation/config/schema"
)

var serviceEntryRules = []rule[*api.ServiceEntry]{
	{"endpoints", schema.Forbidden, func(e *api.ServiceEntry) string {
		return when(e.GetWorkloadSelector() != nil && len(e.GetEndpoints()) > 0, "workloadSelector chooses the endpoints: remove one of the two")
	}},
	{"endpoints", schema.Forbidden, func(e *api.ServiceEntry) string {
		return when(e.GetResolution() == api.ServiceEntry_NONE && len(e.GetEndpoints()) > 0,
			"resolution NONE goes where the client wanted: write STATIC or DNS, or remove the endpoints")
	}},
	{"endpoints", schema.TooMany, func(e *api.ServiceEntry) string {
		return when(e.GetResolution() == api.ServiceEntry_DNS_ROUND_ROBIN && len(e.GetEndpoints()) > 1,
			"DNS_ROUND_ROBIN resolves one name: keep one endpoint, or write DNS")
	}},
	{"ports", schema.Forbidden, func(e *api.ServiceEntry) string {
		return when(len(e.GetPorts()) > 1 && hasSocket(e), "a unix:// endpoint serves one port: keep one")
	}},
	{"hosts", schema.Forbidden, func(e *api.ServiceEntry) string {
		several := len(e.GetHosts()) > 1 && e.GetResolution() != api.ServiceEntry_NONE
		i := slices.IndexFunc(e.GetPorts(), func(p *api.ServicePort) bool { return !inClearHTTP(p.GetProtocol()) && !overTLS(p.GetProtocol()) })
		if !several || i < 0 {
			return ""
		}
		return when(true,
			"connections to port %d do not say for which of the hosts they are: write an entry for each host, or the protocol HTTP, HTTPS or TLS",
			e.GetPorts()[i].GetNumber())
	}},
	{"ports", NoEffect, func(e *api.ServiceEntry) string {
		return when(len(e.GetPorts()) == 0, "without ports nothing goes to the service: write at least one")
	}},
	{"workloadSelector", NoEffect, func(e *api.ServiceEntry) string {
		return when(e.GetWorkloadSelector() != nil && e.GetResolution() == api.ServiceEntry_NONE,
			"resolution NONE uses no endpoints: write STATIC")
	}},
}

func hasSocket(e *api.ServiceEntry) bool {
	for _, endpoint := range e.GetEndpoints() {
		if isSocket(endpoint.GetAddress()) {
			return true
		}
	}
	return false
}

func isSocket(address string) bool { return strings.HasPrefix(address, "unix://") }

// byName tells entries whose hosts are resolved by DNS.
func byName(e *api.ServiceEntry) bool {
	return e.GetResolution() == api.ServiceEntry_DNS || e.GetResolution() == api.ServiceEntry_DNS_ROUND_ROBIN
}

// ServiceEntry checks a spec of the kind.
func ServiceEntry(namespace string, e *api.ServiceEntry) []Problem {
	at := spec
	found := apply(at, e, serviceEntryRules)
	found = append(found, texts(at.field("hosts"), e.GetHosts(), func(host string) string { return entryHost(e, host) })...)
	found = append(found, repeated(at.field("hosts"), e.GetHosts())...)
	found = append(found, each(at.field("hosts"), e.GetHosts(), partialWildcard)...)
	found = append(found, texts(at.field("addresses"), e.GetAddresses(), func(text string) string { return entryAddress(e, text) })...)
	found = append(found, each(at.field("ports"), e.GetPorts(), by(servicePortRules))...)
	found = append(found, optional(at.field("workloadSelector"), e.GetWorkloadSelector(), workloadSelector)...)
	found = append(found, exportToOfService(namespace, at.field("exportTo"), e.GetExportTo())...)
	found = append(found, texts(at.field("subjectAltNames"), e.GetSubjectAltNames(),
		func(name string) string { return when(name == "", "a name is empty") })...)
	ports := map[string]bool{}
	for _, p := range e.GetPorts() {
		ports[p.GetName()] = true
	}
	return append(found, each(at.field("endpoints"), e.GetEndpoints(), func(at path, w *api.WorkloadEntry) []Problem {
		found := append(workload(at, w), invalid(at.field("address"), endpointAddress(e, w.GetAddress()))...)
		return append(found, entries(at.field("ports"), w.GetPorts(), func(at path, name string, _ uint32) []Problem {
			return invalid(at, when(!ports[name], "spec.ports has no port %q: write the name of one", name))
		})...)
	})...)
}

func entryHost(e *api.ServiceEntry, host string) string {
	wild := strings.HasPrefix(host, "*")
	switch {
	case host == "*":
		return "* is not a host: name one, such as *.example.com"
	case wild && byName(e) && len(e.GetEndpoints()) == 0 && e.GetWorkloadSelector() == nil:
		return when(true, "%q cannot be resolved: name one host, write endpoints, or resolution NONE", host)
	case !wild && e.GetResolution() == api.ServiceEntry_DYNAMIC_DNS:
		return when(true, "%q: DYNAMIC_DNS is for hosts such as *.example.com: write DNS", host)
	}
	return wildcardHostname(host)
}

// partialWildcard reports names of services in which * is a part of a label: none of
// the hub's services can have such a name.
func partialWildcard(at path, host string) []Problem {
	rest, wild := strings.CutPrefix(host, "*")
	return problem(at, NoEffect, when(wild && rest != "" && !strings.HasPrefix(rest, "."),
		"%q has * within a label, and no service can have that name: write one such as *.example.com", host))
}

func entryAddress(e *api.ServiceEntry, text string) string {
	block := strings.Contains(text, "/")
	captured := e.GetResolution() == api.ServiceEntry_NONE || e.GetResolution() == api.ServiceEntry_STATIC
	return either(subnet(text), when(block && !captured, "%q: CIDR blocks need resolution NONE or STATIC", text))
}

func endpointAddress(e *api.ServiceEntry, address string) string {
	switch {
	case address == "" || isAddress(address):
		return "" // without an address it is behind its network's gateways
	case isSocket(address):
		return when(byName(e), "%q: sockets need resolution STATIC", address)
	case e.GetResolution() == api.ServiceEntry_STATIC:
		return when(true, "%q is not an IP address: write one, or resolution DNS", address)
	}
	return ""
}

// servicePortRules are the rules of ports. The schema sees to it that numbers and
// names are unique.
var servicePortRules = []rule[*api.ServicePort]{
	{"number", schema.Invalid, func(p *api.ServicePort) string { return port(p.GetNumber()) }},
	{"targetPort", schema.Invalid, func(p *api.ServicePort) string { return optionalPort(p.GetTargetPort()) }},
	{"name", schema.Invalid, func(p *api.ServicePort) string { return label(p.GetName()) }},
	{"protocol", schema.NotSupported, func(p *api.ServicePort) string {
		if p.GetProtocol() == "" {
			return ""
		}
		return protocol(p.GetProtocol())
	}},
}

func workloadSelector(at path, s *api.WorkloadSelector) []Problem {
	return labels(at.field("labels"), s.GetLabels())
}
