package authority

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
)

// Bounds of a certificate signing request.
const (
	MaxRequest = 16 << 10 // bytes of PEM
	minRSA     = 2048     // bits
	maxRSA     = 8192     // a larger key costs too much to verify
)

// ErrOther is the error of a request for the certificate of another.
var ErrOther = errors.New("the request names another identity than the one that was proven")

// ParseRequest reads a certificate signing request of the workload and returns
// the key that it is for. Names other than URIs are left alone: they do not get
// into the certificate.
func ParseRequest(text []byte, w Workload) (crypto.PublicKey, error) {
	request, err := decodeRequest(text)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate signing request: %w", err)
	}
	for _, uri := range request.URIs {
		if named := uri.String(); named != w.String() && named != w.unqualified() {
			return nil, ErrOther
		}
	}
	return request.PublicKey, nil
}

func decodeRequest(text []byte) (*x509.CertificateRequest, error) {
	if len(text) > MaxRequest {
		return nil, fmt.Errorf("it has %d bytes; at most %d are taken", len(text), MaxRequest)
	}
	block, rest := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE REQUEST" && block.Type != "NEW CERTIFICATE REQUEST" || len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("it is not exactly one PEM block of the type CERTIFICATE REQUEST")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, errors.New("not a PKCS #10 certificate request")
	}
	if err := checkKey(request.PublicKey); err != nil {
		return nil, err
	}
	if err := request.CheckSignature(); err != nil {
		return nil, errors.New("its signature is not that of its key")
	}
	return request, checkExtensions(request)
}

func checkKey(key crypto.PublicKey) error {
	switch k := key.(type) {
	case *rsa.PublicKey:
		if bits := k.N.BitLen(); bits < minRSA || bits > maxRSA {
			return fmt.Errorf("its RSA key has %d bits; use %d to %d, or ECDSA P-256", bits, minRSA, maxRSA)
		}
	case *ecdsa.PublicKey:
		if k.Curve == elliptic.P224() {
			return errors.New("its ECDSA key is on the curve P-224; use P-256, P-384 or P-521")
		}
	case ed25519.PublicKey:
	default:
		return errors.New("its key is neither RSA nor ECDSA nor Ed25519")
	}
	return nil
}

var (
	basicConstraints = asn1.ObjectIdentifier{2, 5, 29, 19}
	keyUsage         = asn1.ObjectIdentifier{2, 5, 29, 15}
)

// checkExtensions refuses a request for the certificate of an authority.
func checkExtensions(request *x509.CertificateRequest) error {
	for _, e := range request.Extensions {
		switch {
		case e.Id.Equal(basicConstraints):
			var constraints struct {
				IsCA       bool `asn1:"optional"`
				MaxPathLen int  `asn1:"optional,default:-1"`
			}
			if rest, err := asn1.Unmarshal(e.Value, &constraints); err != nil || len(rest) > 0 || constraints.IsCA {
				return errors.New("it asks for the certificate of an authority; workloads get none")
			}
		case e.Id.Equal(keyUsage):
			var usage asn1.BitString
			if rest, err := asn1.Unmarshal(e.Value, &usage); err != nil || len(rest) > 0 || usage.At(5) != 0 || usage.At(6) != 0 {
				return errors.New("the request is for a CA certificate; workloads must not be CAs")
			}
		}
	}
	return nil
}
