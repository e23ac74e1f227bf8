package analysis

import (
	"slices"

	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
)

// The codes of findings about routes of a sort that no port of the hosts takes.
const (
	PortNotTLS = "PORT_NOT_TLS"
	PortNotTCP = "PORT_NOT_TCP"
)

// connectionRoutes finds tls routes where no port of the VirtualService's own hosts
// speaks TLS, and tcp routes where every port is for http or tls routes.
func (r *References) connectionRoutes(spec *networking.VirtualService) {
	ports := r.ownPorts(spec)
	if len(ports) == 0 {
		return
	}
	if len(spec.GetTls()) > 0 && !slices.ContainsFunc(ports, speaksTLS) {
		r.Add(PortNotTLS, "spec.tls",
			"no port of the hosts speaks TLS, so that the tls routes have no effect: let the name of the port begin with tls- or https-, or set its protocol, or write tcp routes")
	}
	if len(spec.GetTcp()) > 0 && !slices.ContainsFunc(ports, speaksTCP) {
		r.Add(PortNotTCP, "spec.tcp",
			"every port of the hosts speaks HTTP or TLS, so that the tcp routes have no effect: write http or tls routes")
	}
}

// ownPorts are the TCP-based ports of the services that the hosts name.
func (r *References) ownPorts(spec *networking.VirtualService) []federation.ServicePort {
	var ports []federation.ServicePort
	for _, name := range spec.GetHosts() {
		for _, svc := range r.services(name) {
			for _, p := range svc.Ports {
				if p.Protocol.Transport() == federation.TransportTCP {
					ports = append(ports, p)
				}
			}
		}
	}
	return ports
}

func speaksTLS(p federation.ServicePort) bool {
	return p.Protocol == federation.TLS || p.Protocol == federation.HTTPS
}

func speaksTCP(p federation.ServicePort) bool { return !p.Protocol.IsHTTP() && !speaksTLS(p) }
