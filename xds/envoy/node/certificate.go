package node

import (
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/transport"
)

// Unusable means a certificate that cannot be used: without it nothing is sent.
const Unusable = "unusable"

// certificateOf is the secret with the certificate that the Gateway of the node, if it is a
// proxy of one, has it present to backends.
func certificateOf(n Node, r *federation.Reader) string {
	name := n.Labels[federation.GatewayLabel]
	if n.Type == Sidecar || name == "" {
		return ""
	}
	of := federation.ClientCertificateKind
	o, exists := r.Object(federation.ObjectKey{Group: of.Group, Kind: of.Name, Namespace: n.Namespace, Name: name})
	if !exists {
		return ""
	}
	spec, _ := o.Spec.(*federation.ClientCertificate)
	if spec == nil || spec.Secret == "" {
		return Unusable
	}
	return transport.CredentialSecret{Namespace: spec.Namespace, Credential: spec.Secret}.Name()
}

// Certificate is the secret with the certificate that the node presents to backends of its Gateway;
// empty: there is none.
func (v View) Certificate() string {
	if v.config.certificate == Unusable || !v.fronted {
		return ""
	}
	return v.config.certificate
}
