package destinationrule

import (
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/internal/tlsparams"
)

// IsTLS reports whether connections are to be TLS.
func IsTLS(tls *networking.ClientTLSSettings) bool {
	return tls != nil && tls.GetMode() != networking.ClientTLSSettings_DISABLE
}

// RefusedTLS says why TLS cannot be had, which is never replaced by less.
func RefusedTLS(tls *networking.ClientTLSSettings) string {
	switch {
	case !IsTLS(tls):
	case tls.GetCredentialName() != "":
		return "tls.credentialName is not supported for outbound connections yet; name the files on the proxy in clientCertificate, privateKey and caCertificates"
	case tls.GetMode() == networking.ClientTLSSettings_MUTUAL && (tls.GetClientCertificate() == "" || tls.GetPrivateKey() == ""):
		return "tls.mode MUTUAL needs clientCertificate and privateKey"
	case tlsparams.IsInline(tls.GetCaCertificates()):
		return refusedAuthorities(tls.GetCaCertificates())
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
