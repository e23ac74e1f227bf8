// Package tlsparams knows which parameters of TLS Envoy accepts.
package tlsparams

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
)

// cipherSuites are those up to TLS 1.2 that Envoy accepts.
var cipherSuites = []string{
	"ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-AES256-GCM-SHA384",
	"ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-RSA-CHACHA20-POLY1305", "ECDHE-ECDSA-AES128-SHA", "ECDHE-RSA-AES128-SHA",
	"ECDHE-ECDSA-AES256-SHA", "ECDHE-RSA-AES256-SHA", "AES128-GCM-SHA256", "AES256-GCM-SHA384", "AES128-SHA", "AES256-SHA",
}

// IsCipherSuite reports whether Envoy accepts the name, as OpenSSL spells it, or that it is
// a group of names that the server prefers equally: [A|B].
func IsCipherSuite(name string) bool {
	names := []string{name}
	if group, ok := strings.CutPrefix(name, "["); ok && strings.HasSuffix(group, "]") {
		names = strings.Split(strings.TrimSuffix(group, "]"), "|")
	}
	return !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(cipherSuites, name) })
}

// CipherSuites are those of the list that Envoy accepts, each once. It would refuse the
// listener because of any other one.
func CipherSuites(list []string) []string {
	var accepted []string
	for _, name := range list {
		if IsCipherSuite(name) && !slices.Contains(accepted, name) {
			accepted = append(accepted, name)
		}
	}
	return accepted
}

// IsKeyHash tells the SHA-256 of a public key in base64.
func IsKeyHash(text string) bool {
	raw, err := base64.StdEncoding.DecodeString(text)
	return err == nil && len(raw) == sha256.Size
}

// IsCertificateHash tells the SHA-256 of a certificate in hexadecimal, with colons
// between all bytes or none.
func IsCertificateHash(text string) bool {
	if parts := strings.Split(text, ":"); len(parts) == sha256.Size {
		if slices.ContainsFunc(parts, func(part string) bool { return len(part) != 2 }) {
			return false
		}
		text = strings.Join(parts, "")
	}
	raw, err := hex.DecodeString(text)
	return err == nil && len(raw) == sha256.Size
}
