package client

import (
	"crypto/tls"
	"fmt"

	"isthmus.dev/isthmus/internal/keyfile"
)

// TLS names the files of the client's side of mutual TLS, in PEM. Without CA the
// system's are trusted.
type TLS struct{ CA, Cert, Key string }

// config reads the files. A CA file without a certificate is
// an error: it never means that nothing is verified.
func (t TLS) config() (*tls.Config, error) {
	config, err := keyfile.ClientTLS{CA: t.CA, Cert: t.Cert, Key: t.Key}.Config()
	if err != nil {
		return nil, fmt.Errorf("reading the files for TLS: %w", err)
	}
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return config, nil
}
