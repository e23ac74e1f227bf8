package destination

import (
	"cmp"
	"strings"

	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/xds/envoy/destinationrule"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/transport"
)

// Refusal says why nothing may be sent to the destination; empty: all is well.
func (d Destination) Refusal() string {
	if d.DemandsMutual() && !d.Mutual() {
		return "tls.mode ISTIO_MUTUAL needs an identity of the mesh at both ends: the proxy needs IDENTITY_SOURCE in its metadata, and the service must be one of the mesh whose endpoints are known"
	}
	if destinationrule.HasCredential(d.Policy.GetTls()) && !d.balanced && !destinationrule.ForSelected(d.Rules) {
		return "tls.credentialName is for gateways, and for the sidecars that a workloadSelector of the rule selects: add one, or name files on the proxy in clientCertificate, privateKey and caCertificates"
	}
	if d.certificate == node.Unusable {
		return "tls: the Gateway has a certificate for backends that cannot be used; see the condition ResolvedRefs in its status"
	}
	return destinationrule.RefusedTLS(d.Policy.GetTls())
}

// backendTLS is the TLS that gateways speak to the destination, whatever its policy says; nil:
// the policy decides.
func (d Destination) backendTLS(v *facet.View) *networking.ClientTLSSettings {
	if !d.balanced {
		return nil
	}
	return destinationrule.BackendTLS(d.Service.Key.Hostname, d.Port.Number, v.Reader)
}

// Refuse notes why nothing is sent to the destination.
func Refuse(v *facet.View, d Destination, why string) {
	reason := resource.Reason{Code: resource.ReasonTLS, Cause: d.Rule(), Message: d.RuledBy() + ": trafficPolicy." + why}
	if len(d.Rules) == 0 {
		reason.Service, reason.Message = d.Service.Key, d.Title()+": "+why
	}
	reason.Message += "; until then nothing is sent to " + d.Name
	v.LeaveOut(reason)
}

// Server is the name for which connections ask, and the names of which the server's
// certificate must have one: those of the rule, else those of the service. Without
// HTTP there is no request whose host could take their place: there it is the
// hostname of the service.
func (d Destination) Server(http bool) transport.Server {
	tls, host := d.Policy.GetTls(), string(d.Service.Key.Hostname)
	sni, names := tls.GetSni(), tls.GetSubjectAltNames()
	if sni == "" && !http && !strings.HasPrefix(host, "*") {
		sni = host
	}
	if len(names) == 0 {
		names = transport.DeclaredNames(d.Service)
	}
	if len(names) == 0 && !http {
		names = []string{cmp.Or(sni, host)}
	}
	return transport.Server{Http2: d.http2(), SNI: sni, Names: names, Certificate: d.certificate}
}

// Mutual reports whether connections to the destination are mutual TLS wherever the
// endpoint takes it.
func (d Destination) Mutual() bool {
	return d.Identity && !d.Service.MeshExternal && !d.Service.IsDynamic() && (d.Policy.GetTls() == nil || d.DemandsMutual())
}

// DemandsMutual reports whether the rules want mutual TLS of every endpoint.
func (d Destination) DemandsMutual() bool {
	return d.Policy.GetTls().GetMode() == networking.ClientTLSSettings_ISTIO_MUTUAL
}

// Client is the side of mutual TLS that calls the destination.
func (d Destination) Client() transport.Client {
	speaks, _ := d.Requests()
	return transport.Client{
		Agent: d.Agent, Exchange: d.Stats && !d.detected, HTTP: speaks.IsHTTP(), Http2: d.http2(),
		SNI: cmp.Or(d.Policy.GetTls().GetSni(), d.SNI),
	}
}
