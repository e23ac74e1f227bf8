package gatewayapi

import (
	"fmt"
	"slices"

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
	switch validation.Mode {
	case "", gateway.AllowValidOnly:
	case gateway.AllowInsecureFallback:
		l.insecure = true
	default:
		l.faults.add(accepted, string(gateway.ListenerReasonUnsupportedValue), field+".mode",
			"the mode %s is not supported; nothing listens: use %s", federation.Quote(string(validation.Mode)), gateway.AllowValidOnly)
		return
	}
	l.readAuthorities(r, g.Key, validation.CACertificateRefs, field+".caCertificateRefs")
}

// insecure is the condition that warns of ports at which clients pass without a certificate that can
// be verified; none where there are none.
func insecure(spec *gateway.GatewaySpec) []Condition {
	if spec.TLS == nil || spec.TLS.Frontend == nil {
		return nil
	}
	frontend := spec.TLS.Frontend
	lenient := func(v *gateway.FrontendTLSValidation) bool {
		return v != nil && v.Mode == gateway.AllowInsecureFallback
	}
	at := slices.ContainsFunc(frontend.PerPort, func(p gateway.TLSPortConfig) bool { return lenient(p.TLS.Validation) })
	if !at && !lenient(frontend.Default.Validation) {
		return nil
	}
	return []Condition{{
		Type: string(gateway.GatewayConditionInsecureFrontendValidationMode), Status: true,
		Reason:  string(gateway.GatewayReasonConfigurationChanged),
		Message: "clients pass without a certificate that can be verified, where the mode is AllowInsecureFallback",
	}}
}
