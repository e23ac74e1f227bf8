package authority

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
)

// Key is a private key, PEM. However it is printed, it says nothing.
type Key []byte

const redacted = "REDACTED"

// Format keeps every verb of fmt from printing what is secret.
func (Key) Format(to fmt.State, _ rune) { _, _ = io.WriteString(to, redacted) }

// LogValue keeps slog from it.
func (Key) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText keeps encoders from it.
func (Key) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// signer reads the key. Its errors do not repeat a parser's words, which may
// quote it.
func (k Key) signer() (crypto.Signer, error) {
	block, _ := pem.Decode(k)
	if block == nil {
		return nil, errors.New("ca-key.pem is not a PEM key")
	}
	return parseKey(block.Bytes)
}

// parseKey reads PKCS #8, PKCS #1 and SEC 1.
func parseKey(der []byte) (crypto.Signer, error) {
	var signer crypto.Signer
	if key, err := x509.ParsePKCS8PrivateKey(der); err == nil {
		signer, _ = key.(crypto.Signer)
	} else if key, err := x509.ParsePKCS1PrivateKey(der); err == nil {
		signer = key
	} else if key, err := x509.ParseECPrivateKey(der); err == nil {
		signer = key
	}
	if signer == nil {
		return nil, errors.New("ca-key.pem is not an unencrypted PEM key in PKCS #8, PKCS #1 or SEC 1")
	}
	if err := checkKey(signer.Public()); err != nil {
		return nil, fmt.Errorf("ca-key.pem: %w", err)
	}
	return signer, nil
}
