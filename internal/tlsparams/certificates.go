package tlsparams

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"isthmus.dev/isthmus/internal/pemtext"
)

// pemStart begins certificates: no file on a proxy has such a name.
const pemStart = "-----BEGIN "

// IsInline reports whether the text is certificates, and not the path of a file that has them.
func IsInline(text string) bool { return strings.HasPrefix(text, pemStart) }

// Certificates are those of the text, PEM, without what is around them. Envoy refuses a text
// that has none, or one that cannot be read.
func Certificates(text string) (string, error) {
	var all strings.Builder
	for block := range pemtext.Blocks([]byte(text)) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		_, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return "", fmt.Errorf("a certificate cannot be read: %w", err)
		}
		all.Write(pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes}))
	}
	if all.Len() == 0 {
		return "", errors.New("there is no certificate in PEM")
	}
	return all.String(), nil
}
