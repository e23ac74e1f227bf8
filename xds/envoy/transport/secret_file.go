package transport

import (
	"fmt"
	"strings"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/tlsparams"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// Secrets that are files on the proxy, named as Istio names them: file-cert:CHAIN~KEY
// and file-root:CA, here also file-root:CA~CRL. The hub never sees the files: the
// secret is their names. A listener that named them itself would be refused as a
// whole where one is missing, and with it the hosts of all others that share its
// port (R28).
const (
	fileCertificate = "file-cert:"
	fileRoots       = "file-root:"
	fileSeparator   = "~"
	// maxFileSecret bounds the name, which the proxy sends when it asks for the secret.
	maxFileSecret = 500
)

// IsFile reports whether the name is that of a secret that is files on the proxy.
func IsFile(name string) bool {
	return strings.HasPrefix(name, fileCertificate) || strings.HasPrefix(name, fileRoots)
}

// fileSecretName is how listeners refer to the files of that prefix. Errors begin
// with what is wrong.
func fileSecretName(prefix string, paths ...string) (string, error) {
	for _, path := range paths {
		if strings.Contains(path, fileSeparator) {
			return "", fmt.Errorf("%q must not contain %s; use another path", path, fileSeparator)
		}
	}
	name := prefix + strings.Join(paths, fileSeparator)
	if len(name) > maxFileSecret {
		return "", fmt.Errorf("%q and what belongs to it is longer than %d bytes; use shorter paths", paths[0], maxFileSecret)
	}
	return name, nil
}

// NewFileSecret is the secret of that name as Envoy takes it; nil: it is not one of
// files.
func NewFileSecret(name string) *tlsv3.Secret {
	if paths, ok := strings.CutPrefix(name, fileCertificate); ok {
		chain, key, _ := strings.Cut(paths, fileSeparator)
		return &tlsv3.Secret{Name: name, Type: &tlsv3.Secret_TlsCertificate{
			TlsCertificate: &tlsv3.TlsCertificate{CertificateChain: resource.FileSource(chain), PrivateKey: resource.FileSource(key)},
		}}
	}
	paths, ok := strings.CutPrefix(name, fileRoots)
	if !ok {
		return nil
	}
	roots, crl, revokes := strings.Cut(paths, fileSeparator)
	check := &tlsv3.CertificateValidationContext{TrustedCa: resource.FileSource(roots)}
	if revokes {
		check.Crl = resource.FileSource(crl)
	}
	return &tlsv3.Secret{Name: name, Type: &tlsv3.Secret_ValidationContext{ValidationContext: check}}
}

// SecretNames are the secrets to which listeners refer because of the object.
func SecretNames(o *federation.Object) []string {
	spec, ok := o.Spec.(*networking.Gateway)
	if !ok {
		return nil
	}
	var names []string
	for _, server := range spec.GetServers() {
		common, end := &tlsv3.CommonTlsContext{}, Termination{From: o.Credentials.From}
		if server.GetTls() == nil || end.setCertificates(common, server.GetTls()) != nil {
			continue
		}
		for _, secret := range common.GetTlsCertificateSdsSecretConfigs() {
			names = append(names, secret.GetName())
		}
		roots, err := end.clientRoots(server.GetTls())
		if err == nil && !tlsparams.IsInline(server.GetTls().GetCaCertificates()) {
			names = append(names, roots)
		}
	}
	return names
}
