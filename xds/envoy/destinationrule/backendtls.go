package destinationrule

import (
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
)

// BackendTLS is the TLS that gateways speak to a port of the service, whatever
// DestinationRules say of TLS; nil: these decide.
func BackendTLS(host federation.Hostname, port uint16, r *federation.Reader) *networking.ClientTLSSettings {
	for o := range r.Objects().Named(federation.BackendTLSKind, string(host)) {
		rule, _ := o.Spec.(*networking.DestinationRule)
		if tls := override(nil, rule.GetTrafficPolicy(), port).GetTls(); tls != nil {
			return tls
		}
	}
	return nil
}

// HasBackendTLS reports whether gateways speak TLS to some port of the service, whatever
// DestinationRules say.
func HasBackendTLS(host federation.Hostname, r *federation.Reader) bool {
	return !none(r.Objects().Named(federation.BackendTLSKind, string(host)))
}
