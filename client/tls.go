package client

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// TLS names the files of the client's side of mutual TLS, in PEM. Without CA the
// system's are trusted.
type TLS struct{ CA, Cert, Key string }

// config reads the files. A CA file without a certificate is an error: it never
// means that nothing is verified.
func (t TLS) config() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("reading the CA of the hub: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("reading the CA of the hub: %s holds no certificate in PEM", t.CA)
		}
	}
	if (t.Cert == "") != (t.Key == "") {
		return nil, fmt.Errorf("a client's certificate and its key belong together; name both files, or none")
	}
	if t.Cert != "" {
		pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, fmt.Errorf("reading the client's certificate %s and its key: %w", t.Cert, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
