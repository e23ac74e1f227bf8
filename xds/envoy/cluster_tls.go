package envoy

import (
	"cmp"
	"strings"

	"isthmus.dev/isthmus/xds/envoy/destinationrule"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/transport"
)

// refusal says why nothing may be sent to the destination; empty: all is well.
func (d destination) refusal() string {
	if d.demandsMutual() && !d.mutual() {
		return "tls.mode ISTIO_MUTUAL needs an identity of the mesh at both ends: the proxy needs IDENTITY_SOURCE in its metadata, and the service must be one of the mesh whose endpoints are known"
	}
	return destinationrule.RefusedTLS(d.policy.GetTls())
}

func (b *builder) refuse(d destination, why string) {
	b.leaveOut(resource.Reason{Code: resource.ReasonTLS, Cause: d.rule(), Message: d.ruledBy() + ": trafficPolicy." + why + "; until then nothing is sent to " + d.name})
}

// ruledBy names the rules that made the destination's policy.
func (d destination) ruledBy() string {
	names := make([]string, len(d.rules))
	for i, o := range d.rules {
		names[i] = o.Key.String()
	}
	return strings.Join(names, ", ")
}

// Server is the name for which connections ask, and the names of which the server's
// certificate must have one: those of the rule, else those of the service. Without
// HTTP there is no request whose host could take their place: there it is the
// hostname of the service.
func (d destination) server(http bool) transport.Server {
	tls, host := d.policy.GetTls(), string(d.service.Key.Hostname)
	sni, names := tls.GetSni(), tls.GetSubjectAltNames()
	if sni == "" && !http && !strings.HasPrefix(host, "*") {
		sni = host
	}
	if len(names) == 0 {
		names = transport.DeclaredNames(d.service)
	}
	if len(names) == 0 && !http {
		names = []string{cmp.Or(sni, host)}
	}
	return transport.Server{Http2: destinationrule.SpeaksHTTP2(d.port.Protocol, d.policy), SNI: sni, Names: names}
}
