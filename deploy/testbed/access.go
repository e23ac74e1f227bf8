package testbed

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"strings"
)

// Access is what one user needs to reach a Kubernetes API. URL may be changed,
// for example to that of a Proxy. The credential is a certificate or a token.
type Access struct {
	URL   string
	CA    []byte
	Cert  []byte
	Key   []byte
	Token string
}

// Kubeconfig returns a kubeconfig with inline data only.
func (a Access) Kubeconfig() []byte {
	var text strings.Builder
	text.WriteString("apiVersion: v1\nkind: Config\ncurrent-context: default\n")
	text.WriteString("contexts:\n- name: default\n  context: {cluster: default, user: default}\n")
	fmt.Fprintf(&text, "clusters:\n- name: default\n  cluster:\n    server: %s\n    certificate-authority-data: %s\n",
		a.URL, base64.StdEncoding.EncodeToString(a.CA))
	text.WriteString("users:\n- name: default\n  user:\n")
	if a.Token != "" {
		fmt.Fprintf(&text, "    token: %q\n", a.Token)
	}
	if a.Cert != nil {
		fmt.Fprintf(&text, "    client-certificate-data: %s\n    client-key-data: %s\n",
			base64.StdEncoding.EncodeToString(a.Cert), base64.StdEncoding.EncodeToString(a.Key))
	}
	return []byte(text.String())
}

// TLS returns a client configuration with the certificates of the access.
func (a Access) TLS() (*tls.Config, error) {
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(a.CA)
	if a.Cert == nil {
		return config, nil
	}
	pair, err := tls.X509KeyPair(a.Cert, a.Key)
	if err != nil {
		return nil, fmt.Errorf("reading the client certificate: %w", err)
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}
