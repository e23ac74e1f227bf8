package destinationrule

import (
	"fmt"

	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/internal/tlsparams"
)

// IsTLS reports whether connections are to be TLS.
func IsTLS(tls *networking.ClientTLSSettings) bool {
	return tls != nil && tls.GetMode() != networking.ClientTLSSettings_DISABLE
}

// HasCredential reports whether the certificates of connections are in a Secret of the
// proxy's namespace.
func HasCredential(tls *networking.ClientTLSSettings) bool {
	return tls.GetCredentialName() != "" &&
		(tls.GetMode() == networking.ClientTLSSettings_SIMPLE || tls.GetMode() == networking.ClientTLSSettings_MUTUAL)
}

// RefusedTLS says why TLS cannot be had, which is never replaced by less.
func RefusedTLS(tls *networking.ClientTLSSettings) string {
	switch {
	case !IsTLS(tls):
	case HasCredential(tls):
		return refusedCredential(tls.GetCredentialName())
	case tls.GetMode() == networking.ClientTLSSettings_MUTUAL && (tls.GetClientCertificate() == "" || tls.GetPrivateKey() == ""):
		return "tls.mode MUTUAL needs credentialName, or clientCertificate and privateKey"
	case tlsparams.IsInline(tls.GetCaCertificates()):
		return refusedAuthorities(tls.GetCaCertificates())
	}
	return ""
}

// refusedCredential says why no Secret has the name.
func refusedCredential(name string) string {
	_, ok := tlsparams.Credential(name)
	if !ok {
		return fmt.Sprintf("tls.credentialName: %q is not the name of a secret; it has letters, digits, - and . and does not end in %s",
			name, tlsparams.AuthoritySuffix)
	}
	return ""
}

// refusedAuthorities says why Envoy would refuse the certificates.
func refusedAuthorities(inline string) string {
	_, err := tlsparams.Certificates(inline)
	if err != nil {
		return "tls.caCertificates: " + err.Error()
	}
	return ""
}
