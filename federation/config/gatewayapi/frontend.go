package gatewayapi

import (
	"fmt"

	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"isthmus.dev/isthmus/federation"
)

// readFrontend reads what certificates clients of a listener must have. A listener whose
// clients cannot be validated as the Gateway wants does not listen.
func (g *gatewayView) readFrontend(r *federation.Reader, l *listener, in *gateway.FrontendTLSConfig) {
	validation, field := in.Default.Validation, "spec.tls.frontend.default.validation"
	for i, at := range in.PerPort {
		if at.Port == l.Port {
			validation, field = at.TLS.Validation, fmt.Sprintf("spec.tls.frontend.perPort[%d].tls.validation", i)
		}
	}
	if validation == nil {
		return
	}
	if validation.Mode != "" && validation.Mode != gateway.AllowValidOnly {
		l.faults.add(accepted, string(gateway.ListenerReasonUnsupportedValue), field+".mode",
			"the mode %s is not supported; nothing listens: use %s", federation.Quote(string(validation.Mode)), gateway.AllowValidOnly)
		return
	}
	field += ".caCertificateRefs"
	if len(validation.CACertificateRefs) != 1 {
		l.faults.add(resolved, string(gateway.ListenerReasonInvalidCACertificateRef), field, "the hub supports one reference, and there are %d; nothing listens", len(validation.CACertificateRefs))
		return
	}
	ref, field := validation.CACertificateRefs[0], field+"[0]"
	if ref.Group != "" || ref.Kind != "Secret" {
		l.faults.add(resolved, string(gateway.ListenerReasonInvalidCACertificateKind), field, "the hub reads authorities from Secrets alone, and not from a %s; nothing listens", federation.Quote(string(ref.Kind)))
		return
	}
	if g.mayUse(r, l, field, ref.Namespace, string(ref.Name), string(gateway.ListenerReasonInvalidCACertificateRef)) {
		l.roots = string(ref.Name)
	}
}
