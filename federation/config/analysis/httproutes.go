package analysis

import (
	"fmt"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
)

// PortNotHTTP is the code of a finding about HTTP routes for a port that is not
// known to speak HTTP.
const PortNotHTTP = "PORT_NOT_HTTP"

// httpRoutes finds ports of the VirtualService's own hosts to which its HTTP
// routes do not apply: the protocol of the port is not HTTP, mostly because
// neither its name nor its appProtocol says which one it is.
func (r *References) httpRoutes(spec *networking.VirtualService) {
	if len(spec.GetHttp()) == 0 {
		return
	}
	for i, name := range spec.GetHosts() {
		services := r.services(name)
		if strings.HasPrefix(name, "*") && len(services) > 0 {
			if slices.ContainsFunc(services, r.speaksHTTP) {
				continue // the routes are for that one
			}
			services = services[:1] // one is enough for all that are covered
		}
		for _, svc := range services {
			for _, p := range svc.Ports {
				if p.Protocol.Transport() == federation.TransportTCP && !r.mayBeHTTP(p) && r.meant(spec, svc, p) {
					r.find(r.severity(spec, svc, p), PortNotHTTP, fmt.Sprintf("spec.hosts[%d]", i),
						"the http routes have no effect on port %d (%q) of %s: it is treated as %s; if it speaks HTTP, let its name begin with http- or set its appProtocol to http",
						p.Number, p.Name, svc.Key.Hostname, p.Protocol)
				}
			}
		}
	}
}

// services are those of a host of the object, or of those that its wildcard matches.
func (r *References) services(name string) []*federation.Service {
	host := federation.ResolveHost(name, r.object.Key.Namespace)
	suffix, wild := strings.CutPrefix(string(host), "*")
	if !wild {
		return r.reader.ByHostname(host)
	}
	var found []*federation.Service
	for svc := range r.reader.Specs() {
		if strings.HasSuffix(string(svc.Key.Hostname), suffix) {
			found = append(found, svc)
		}
	}
	return found
}

// mayBeHTTP reports whether requests to the port are routed: those that proxies detect are.
func (r *References) mayBeHTTP(p federation.ServicePort) bool {
	return p.Protocol.IsHTTP() || p.Undeclared && r.reader.Mesh().DetectsOutbound()
}

// speaksHTTP reports whether the HTTP routes apply to some port of the service.
func (r *References) speaksHTTP(svc *federation.Service) bool {
	return slices.ContainsFunc(svc.Ports, r.mayBeHTTP)
}

// meant reports whether the HTTP routes seem to be for the port: one of them names
// it, nothing says what it speaks, or no port of the service speaks HTTP.
func (r *References) meant(spec *networking.VirtualService, svc *federation.Service, p federation.ServicePort) bool {
	if names(spec, uint32(p.Number)) {
		return true
	}
	if matchesPorts(spec) {
		return false
	}
	return undeclared(p) || !r.speaksHTTP(svc)
}

// severity is lower where the routes apply to another port of the service: that
// may be all that their author wants.
func (r *References) severity(spec *networking.VirtualService, svc *federation.Service, p federation.ServicePort) Severity {
	if r.speaksHTTP(svc) && !names(spec, uint32(p.Number)) {
		return Info
	}
	return Warning
}

// names reports whether one of the HTTP routes is for the port by its number.
func names(spec *networking.VirtualService, port uint32) bool {
	for _, route := range spec.GetHttp() {
		for _, match := range route.GetMatch() {
			if match.GetPort() == port {
				return true
			}
		}
	}
	return false
}

// matchesPorts reports whether every HTTP route is for ports that it names.
func matchesPorts(spec *networking.VirtualService) bool {
	for _, route := range spec.GetHttp() {
		if len(route.GetMatch()) == 0 {
			return false
		}
		for _, match := range route.GetMatch() {
			if match.GetPort() == 0 {
				return false
			}
		}
	}
	return true
}

// undeclared reports whether the port is taken for TCP because nothing says what it
// speaks.
func undeclared(p federation.ServicePort) bool {
	prefix, _, _ := strings.Cut(strings.ToLower(p.Name), "-")
	return p.Protocol == federation.TCP && (prefix == "" || federation.ParseProtocol(prefix) == federation.Unsupported)
}
