package gatewayapi

import (
	"slices"

	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"isthmus.dev/isthmus/federation"
)

var tlsPolicyKind = ofGroup("BackendTLSPolicy")

// tlsPolicy is the name of a BackendTLSPolicy for a port of a Service, or "". Gateways cannot
// speak TLS as such a policy wants, and must not send in plain text what it protects.
func tlsPolicy(r *federation.Reader, namespace, service, port string) string {
	for o := range r.Objects().In(tlsPolicyKind, namespace) {
		spec, ok := o.Spec.(*gateway.BackendTLSPolicySpec)
		if ok && slices.ContainsFunc(spec.TargetRefs, func(ref gateway.LocalPolicyTargetReferenceWithSectionName) bool {
			return ref.Group == "" && ref.Kind == "Service" && string(ref.Name) == service && (ref.SectionName == nil || *ref.SectionName == "" || string(*ref.SectionName) == port)
		}) {
			return o.Key.Name
		}
	}
	return ""
}
