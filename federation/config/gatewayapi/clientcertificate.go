package gatewayapi

import (
	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/internal/tlsparams"
)

// clientCertificate is what proxies of a Gateway present to backends. The listeners of the Gateway do
// not depend on it.
type clientCertificate struct {
	secret Secret // without a name it cannot be used, and faults says why
	faults faults
}

// readClientCertificate reads the one that the Gateway names; nil: it names none.
func readClientCertificate(r *federation.Reader, of federation.ObjectKey, spec *gateway.GatewaySpec) *clientCertificate {
	if spec.TLS == nil || spec.TLS.Backend == nil || spec.TLS.Backend.ClientCertificateRef == nil {
		return nil
	}
	ref := spec.TLS.Backend.ClientCertificateRef
	use := reference{
		by: of, kind: "Secret", namespace: ref.Namespace, name: string(ref.Name), field: "spec.tls.backend.clientCertificateRef",
		otherwise: "nothing is sent to backends of BackendTLSPolicies",
	}
	c := &clientCertificate{}
	_, named := tlsparams.Credential(use.name)
	switch {
	case ref.Group != nil && *ref.Group != "" || ref.Kind != nil && string(*ref.Kind) != use.kind:
		c.refuse(use, "only Secrets are supported")
	case !named:
		c.refuse(use, "the name ends in "+tlsparams.AuthoritySuffix+" or is not that of a Secret")
	case use.ofSecret(r, of, &c.faults):
		c.secret = Secret{Namespace: use.from(), Name: use.name, Granted: use.from() != of.Namespace}
	}
	return c
}

func (c *clientCertificate) refuse(use reference, why string) {
	c.faults.add(resolved, string(gateway.GatewayReasonInvalidClientCertificateRef), use.field, "%s; %s", why, use.otherwise)
}

// secrets are those that gateways use; none where it cannot be used.
func (c *clientCertificate) secrets() []Secret {
	if c == nil || c.secret.Name == "" {
		return nil
	}
	return []Secret{c.secret}
}

// conditions are what a Gateway says about it; none where it names none.
func (c *clientCertificate) conditions() []Condition {
	if c == nil {
		return nil
	}
	return c.faults.conditions(resolved)
}

// object is the certificate for the proxies of the Gateway alone.
func (c *clientCertificate) object(of *federation.Object) *config.Object {
	spec := object{}
	if c.secret.Name != "" {
		spec["secret"] = c.secret.Name
	}
	if c.secret.Namespace != of.Key.Namespace && c.secret.Namespace != "" {
		spec["namespace"] = c.secret.Namespace
	}
	return derived(of, federation.ClientCertificateKind, of.Key.Name, spec)
}
