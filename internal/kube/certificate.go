package kube

import (
	"bytes"
	"crypto"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
	"time"
)

const (
	minRSABits       = 2048
	typeCertificate  = "CERTIFICATE"
	typeECParameters = "EC PARAMETERS"
)

// pemBlocks splits PEM text. Anything outside the blocks, and CRLF line ends, refuse it (B-K13).
func pemBlocks(data []byte, field string, found *findings) []*pem.Block {
	if bytes.ContainsRune(data, '\r') {
		found.add(CodePEM, field, "the PEM has CRLF line ends; save it with LF")
		return nil
	}
	var blocks []*pem.Block
	for rest := bytes.TrimSpace(data); len(rest) > 0; rest = bytes.TrimSpace(rest) {
		block, after := pem.Decode(rest)
		begin := []byte("-----BEGIN ")
		if block == nil || !bytes.HasPrefix(rest, begin) || bytes.Count(rest[:len(rest)-len(after)], begin) != 1 {
			found.add(CodePEM, field, "holds text outside of PEM blocks, or none; keep the blocks only")
			return nil
		}
		blocks, rest = append(blocks, block), after
	}
	if len(blocks) == 0 {
		found.add(CodePEM, field, "holds no PEM block")
	}
	return blocks
}

// certificates parses PEM that holds nothing but certificates.
func certificates(data []byte, field string, found *findings) []*x509.Certificate {
	var parsed []*x509.Certificate
	for i, block := range pemBlocks(data, field, found) {
		if block.Type != typeCertificate || len(block.Headers) > 0 {
			found.add(CodePEM, field, fmt.Sprintf("block %d is not a certificate", i+1))
			return nil
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			found.add(CodeCertificate, field, fmt.Sprintf("certificate %d cannot be read", i+1))
			return nil
		}
		parsed = append(parsed, certificate)
	}
	return parsed
}

// authority checks CA data: every key strong enough, at least one certificate valid now.
func authority(data []byte, field string, now time.Time, found *findings) []byte {
	parsed := certificates(data, field, found)
	if len(parsed) == 0 {
		return nil
	}
	valid := false
	for i, certificate := range parsed {
		if weak(certificate.PublicKey) {
			found.add(CodeWeakKey, field, fmt.Sprintf("certificate %d has an RSA key of fewer than %d bits", i+1, minRSABits))
		}
		valid = valid || !now.Before(certificate.NotBefore) && !now.After(certificate.NotAfter)
	}
	if !valid {
		validity(parsed[0], field, now, found)
	}
	return data
}

func validity(certificate *x509.Certificate, field string, now time.Time, found *findings) {
	if now.After(certificate.NotAfter) {
		found.add(CodeExpired, field, "the certificate expired at "+certificate.NotAfter.UTC().Format(time.RFC3339))
	}
	if now.Before(certificate.NotBefore) {
		found.add(CodeNotYetValid, field, "the certificate is valid from "+certificate.NotBefore.UTC().Format(time.RFC3339)+"; check both clocks")
	}
}

func weak(key crypto.PublicKey) bool {
	public, ok := key.(*rsa.PublicKey)
	return ok && public.N.BitLen() < minRSABits
}

// clientPair is a client certificate with its key, decoded from base64.
type clientPair struct {
	certificate, key []byte
	path             string
	now              time.Time
}

func (p clientPair) read(to *Credentials, found *findings) {
	certificateField, keyField := p.path+"client-certificate-data", p.path+"client-key-data"
	chain := certificates(p.certificate, certificateField, found)
	private := privateKey(p.key, keyField, found)
	if len(chain) == 0 {
		return
	}
	leaf := chain[0]
	validity(leaf, certificateField, p.now, found)
	if weak(leaf.PublicKey) {
		found.add(CodeWeakKey, certificateField, fmt.Sprintf("the RSA key has fewer than %d bits", minRSABits))
	}
	if private != nil && !sameKey(leaf.PublicKey, private) {
		found.add(CodeKeyMismatch, keyField, "does not belong to client-certificate-data")
	}
	to.ClientCertificate, to.ClientKey = p.certificate, NewSecret(string(p.key))
	if to.Expires.IsZero() || leaf.NotAfter.Before(to.Expires) {
		to.Expires = leaf.NotAfter
	}
}

func sameKey(public crypto.PublicKey, private crypto.Signer) bool {
	comparable, ok := private.Public().(interface{ Equal(crypto.PublicKey) bool })
	return ok && comparable.Equal(public)
}

// privateKey reads one unencrypted key; the words of the parser are not repeated, since they may quote it.
func privateKey(data []byte, field string, found *findings) crypto.Signer {
	blocks := pemBlocks(data, field, found)
	if len(blocks) == 2 && blocks[0].Type == typeECParameters {
		blocks = blocks[1:]
	}
	if len(blocks) != 1 {
		if len(blocks) > 1 {
			found.add(CodePEM, field, "must hold one key and nothing else")
		}
		return nil
	}
	block := blocks[0]
	if block.Type == "ENCRYPTED PRIVATE KEY" || strings.Contains(block.Headers["Proc-Type"], "ENCRYPTED") {
		found.add(CodeEncryptedKey, field, "the key is encrypted; the hub has nowhere to ask for its password")
		return nil
	}
	signer := parseKey(block)
	if signer == nil {
		found.add(CodePEM, field, "is not a private key that can be read")
	}
	return signer
}

func parseKey(block *pem.Block) crypto.Signer {
	var key any
	var err error
	switch block.Type {
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	default:
		return nil
	}
	if err != nil {
		return nil
	}
	signer, _ := key.(crypto.Signer)
	return signer
}
