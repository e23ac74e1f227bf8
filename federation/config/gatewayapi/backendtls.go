package gatewayapi

import (
	"fmt"
	"slices"

	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/kind"
)

// tlsPolicy is a BackendTLSPolicy.
type tlsPolicy struct {
	*federation.Object
	spec *gateway.BackendTLSPolicySpec
}

// readPolicy reads a BackendTLSPolicy; nil if there is none of the key.
func readPolicy(r *federation.Reader, key federation.ObjectKey) *tlsPolicy {
	o, exists := r.Object(key)
	if !exists || o.Key != key {
		return nil
	}
	spec, ok := o.Spec.(*gateway.BackendTLSPolicySpec)
	if !ok {
		return nil
	}
	return &tlsPolicy{o, spec}
}

// policyFor is the policy that decides for a port of a Service: the oldest that names the port,
// else the oldest that names the Service alone; nil: there is none.
func policyFor(r *federation.Reader, namespace, service, port string) *tlsPolicy {
	if p := policyOf(r, namespace, service, port); p != nil && port != "" {
		return p
	}
	return policyOf(r, namespace, service, "")
}

// policyOf is the oldest policy that names exactly the section of the Service.
func policyOf(r *federation.Reader, namespace, service, section string) (oldest *tlsPolicy) {
	for o := range r.Objects().In(federation.GatewayAPI.BackendTLSPolicy, namespace) {
		spec, ok := o.Spec.(*gateway.BackendTLSPolicySpec)
		if ok && (oldest == nil || o.CompareAge(oldest.Object) < 0) &&
			slices.ContainsFunc(spec.TargetRefs, func(ref gateway.LocalPolicyTargetReferenceWithSectionName) bool {
				return isService(ref) && string(ref.Name) == service && sectionOf(ref) == section
			}) {
			oldest = &tlsPolicy{o, spec}
		}
	}
	return oldest
}

func isService(ref gateway.LocalPolicyTargetReferenceWithSectionName) bool {
	return ref.Group == "" && ref.Kind == "Service"
}

func sectionOf(ref gateway.LocalPolicyTargetReferenceWithSectionName) string {
	if ref.SectionName == nil {
		return ""
	}
	return string(*ref.SectionName)
}

// tls is what gateways speak, as a DestinationRule has it; nil: they cannot, and the faults
// say why.
func (p *tlsPolicy) tls(r *federation.Reader, s *Status, why *faults) object {
	in, field := p.spec.Validation, "spec.validation"
	if len(p.spec.Options) > 0 {
		s.unsupported("spec.options", kind.NoTLSOptions)
	}
	names := []any{}
	for _, name := range in.SubjectAltNames {
		if name.Type == gateway.URISubjectAltNameType {
			names = append(names, string(name.URI))
		} else {
			names = append(names, string(name.Hostname))
		}
	}
	if len(names) == 0 {
		names = append(names, string(in.Hostname))
	}
	tls := object{"mode": "SIMPLE", "sni": string(in.Hostname), "subjectAltNames": names}
	if known := in.WellKnownCACertificates; known != nil && *known != "" {
		if *known != gateway.WellKnownCACertificatesSystem {
			why.add(accepted, string(gateway.PolicyReasonInvalid), field+".wellKnownCACertificates", "%s is not supported; use System",
				federation.Quote(string(*known)))
			return nil
		}
		return tls
	}
	authorities := p.authorities(r, field+".caCertificateRefs", why)
	if authorities == "" {
		why.add(accepted, string(gateway.BackendTLSPolicyReasonNoValidCACertificate), field+".caCertificateRefs",
			"there is no authority that could verify the servers; requests of routes for them get 500")
		return nil
	}
	tls["caCertificates"] = authorities
	return tls
}

// authorities are the certificates to which the policy refers, PEM. What is wrong with a
// reference is added to the faults; those of others count.
func (p *tlsPolicy) authorities(r *federation.Reader, field string, why *faults) string {
	var all bundle
	for i, ref := range p.spec.Validation.CACertificateRefs {
		at := itemField(field, i)
		if ref.Group != "" || string(ref.Kind) != federation.ConfigMapKind.Name {
			why.add(resolved, string(gateway.BackendTLSPolicyReasonInvalidKind), at,
				"the hub reads authorities of backends from ConfigMaps alone, and not from a %s", federation.Quote(string(ref.Kind)))
			continue
		}
		err := all.add(r, configMapKey(p.Key, p.Key.Namespace, string(ref.Name)))
		if err != nil {
			why.add(resolved, string(gateway.BackendTLSPolicyReasonInvalidCACertificateRef), at, "the ConfigMap %s/%s cannot be used: %v",
				p.Key.Namespace, ref.Name, err)
		}
	}
	return string(all)
}

// passed are the destinations of connections whose TLS the listener does not end. They are not
// for backends of which gateways have to verify the certificate: these would get TLS in TLS.
func (g *gatewayView) passed(r *federation.Reader, l *listener, v *routeView) []any {
	return v.splitsTo(r, &faults{}, func(ref backendRef, b backend) bool {
		if b.policy != "" {
			g.status.notes = append(g.status.notes, config.Problem{
				Code: federation.CodeNotHonoured, Object: v.Key.String(),
				Field: ref.field, Message: fmt.Sprintf(
					"the listener %s passes TLS on, and the BackendTLSPolicy %s/%s wants TLS of the gateway; its connections are closed",
					l.Name, g.Key.Namespace, b.policy),
			})
		}
		return b.policy == ""
	})
}
