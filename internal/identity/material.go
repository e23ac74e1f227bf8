package identity

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"isthmus.dev/isthmus/internal/pemtext"
)

// parts is what a source has under one name, by file name or key.
type parts map[string][]byte

// The names of what a secret holds: as Kubernetes has them, and as Istio's
// generic secrets do.
var (
	chainNames     = []string{"tls.crt", "cert"}
	keyNames       = []string{"tls.key", "key"}
	authorityNames = []string{"ca.crt", "cacert"}
	crlNames       = []string{"ca.crl", "crl"}
	partNames      = slices.Concat(chainNames, keyNames, authorityNames, crlNames)
)

// first is the first part of those names, with its name.
func (p parts) first(names []string) (string, []byte) {
	for _, name := range names {
		if content, has := p[name]; has {
			return name, content
		}
	}
	return names[0], nil
}

// pair is the server's certificate with its key. Errors name parts and never
// hold what is in them.
func (p parts) pair(now time.Time) (Secret, error) {
	chainName, chain := p.first(chainNames)
	keyName, key := p.first(keyNames)
	for _, part := range []struct {
		name    string
		content []byte
	}{{chainName, chain}, {keyName, key}} {
		if len(bytes.TrimSpace(part.content)) == 0 {
			return Secret{}, fmt.Errorf("%s is missing or empty", part.name)
		}
	}
	certificates, err := certificatesOf(chainName, chain)
	if err != nil {
		return Secret{}, err
	}
	if _, err := tls.X509KeyPair(chain, key); err != nil { // its words may quote the key
		return Secret{}, fmt.Errorf("%s is not an unencrypted PEM key, or not that of the certificate in %s", keyName, chainName)
	}
	return newSecret(Material{Chain: chain, Key: key}, certificates, now), nil
}

// authorities are those that sign the certificates of the other side, with what they revoked.
func (p parts) authorities(now time.Time) (Secret, error) {
	name, content := p.first(authorityNames)
	if len(bytes.TrimSpace(content)) == 0 {
		return Secret{}, fmt.Errorf("%s is missing or empty", name)
	}
	certificates, err := certificatesOf(name, content)
	if err != nil {
		return Secret{}, err
	}
	listName, list := p.first(crlNames)
	if err := checkRevocations(listName, list); err != nil {
		return Secret{}, err
	}
	return newSecret(Material{Authorities: content, CRL: list}, certificates, now), nil
}

// checkRevocations demands PEM that holds lists of revoked certificates and nothing else; empty:
// there is none.
func checkRevocations(name string, content []byte) error {
	for block := range pemtext.Whole(content) {
		if block.Type != "X509 CRL" {
			return fmt.Errorf("%s holds something that is not a PEM list of revoked certificates", name)
		}
		if _, err := x509.ParseRevocationList(block.Bytes); err != nil {
			return fmt.Errorf("%s: a list of revoked certificates cannot be read", name)
		}
	}
	return nil
}

// newSecret expires with the first certificate that does; those that are over
// count where it is all of them, or the server's own.
func newSecret(m Material, certificates []*x509.Certificate, now time.Time) Secret {
	s := Secret{Material: m, Fingerprint: m.fingerprint(), Expires: certificates[0].NotAfter}
	if len(m.Key) > 0 && now.After(s.Expires) {
		return s
	}
	for _, c := range certificates[1:] {
		if !now.After(c.NotAfter) && (now.After(s.Expires) || c.NotAfter.Before(s.Expires)) {
			s.Expires = c.NotAfter
		}
	}
	return s
}

// certificatesOf reads PEM that holds certificates and nothing else.
func certificatesOf(name string, content []byte) ([]*x509.Certificate, error) {
	var all []*x509.Certificate
	for block := range pemtext.Whole(content) {
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("%s holds something that is not a PEM certificate", name)
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: certificate %d cannot be read", name, len(all)+1)
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, errors.New(name + " holds no certificate")
	}
	return all, nil
}

// read turns the parts into the secret that the reference asks for.
func (p parts) read(authorities bool, now time.Time) (Secret, error) {
	if authorities {
		return p.authorities(now)
	}
	return p.pair(now)
}

// has reports whether the parts are meant to hold what a reference asks for.
func (p parts) has(authorities bool) bool {
	names := slices.Concat(chainNames, keyNames)
	if authorities {
		names = authorityNames
	}
	return slices.ContainsFunc(names, func(name string) bool { _, has := p[name]; return has })
}
