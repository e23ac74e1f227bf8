package authority

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"time"

	"isthmus.dev/isthmus/internal/pemtext"
)

// generation is one signer in the course of time. It is not changed after it was
// made.
type generation struct {
	chain   []*x509.Certificate // the signer's, then those that lead to a root
	roots   []*x509.Certificate
	key     crypto.Signer // nil: it signs no more
	since   time.Time     // its roots are in the bundle
	signs   time.Time     // from then on, until the next one does
	longest time.Duration // that what it signed may live
	own     bool          // the hub made it
	sealed  []byte        // the key, as it is stored
	broken  error         // why the stored key cannot be used; key is nil
}

func (g generation) signer() *x509.Certificate { return g.chain[0] }

// between are the intermediate certificates, which a verifier needs besides its root.
func (g generation) between() []*x509.Certificate {
	var found []*x509.Certificate
	for _, c := range g.chain {
		if !contains(g.roots, c) {
			found = append(found, c)
		}
	}
	return found
}

// ends is when the first of what leads to a root does.
func (g generation) ends() time.Time {
	first := g.signer().NotAfter
	for _, c := range g.chain[1:] {
		first = earlier(first, c.NotAfter)
	}
	return first
}

// rootEnds is when the last of the roots to which the signer leads does. A root that was renewed
// with the same key is two.
func (g generation) rootEnds() (last time.Time) {
	for _, root := range g.roots {
		if root.NotAfter.After(last) && slices.ContainsFunc(g.chain, func(c *x509.Certificate) bool { return isOf(c, root) }) {
			last = root.NotAfter
		}
	}
	return last
}

// isOf reports whether the root signed the certificate, or is it.
func isOf(c, root *x509.Certificate) bool {
	return c.Equal(root) || bytes.Equal(c.RawIssuer, root.RawSubject) && c.CheckSignatureFrom(root) == nil
}

// newRoot makes a signer that is its own root.
func newRoot(domain string, now time.Time, life time.Duration) (generation, error) {
	key, _, err := NewKey()
	if err != nil {
		return generation{}, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return generation{}, fmt.Errorf("making a root: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{Organization: []string{domain}, CommonName: "isthmus root " + serial.Text(16)[:8]},
		NotBefore:    now.Add(-skew).Truncate(time.Second),
		NotAfter:     now.Add(life).Truncate(time.Second),
		KeyUsage:     x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		URIs:         []*url.URL{{Scheme: "spiffe", Host: domain}},
		IsCA:         true, MaxPathLenZero: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return generation{}, fmt.Errorf("making a root: %w", err)
	}
	root, err := x509.ParseCertificate(der)
	if err != nil {
		return generation{}, fmt.Errorf("making a root: %w", err)
	}
	return generation{chain: []*x509.Certificate{root}, roots: []*x509.Certificate{root}, key: key, own: true}, nil
}

// Files are an intermediate as Istio's cacerts have it, PEM. However they are
// printed, they say nothing of the key.
type Files struct {
	Certificate []byte // ca-cert.pem
	Key         Key    // ca-key.pem
	Root        []byte // root-cert.pem; with several, all are trusted
	Chain       []byte // cert-chain.pem: from the certificate to the root; may be empty
}

// read checks that the parts belong together and may sign.
func (f Files) read(now time.Time) (generation, error) {
	certificate, err := ParseCertificates("ca-cert.pem", f.Certificate)
	if err != nil {
		return generation{}, err
	}
	roots, err := ParseCertificates("root-cert.pem", f.Root)
	if err != nil {
		return generation{}, err
	}
	chain := certificate
	if len(f.Chain) > 0 {
		more, err := ParseCertificates("cert-chain.pem", f.Chain)
		if err != nil {
			return generation{}, err
		}
		for _, c := range more {
			if !contains(chain, c) && !contains(roots, c) {
				chain = append(chain, c)
			}
		}
	}
	g := generation{chain: chain, roots: roots}
	g.key, err = f.Key.signer()
	if err != nil {
		return generation{}, err
	}
	return g, g.check(now)
}

// check proves that what the signer signs can be verified with the roots.
func (g generation) check(now time.Time) error {
	signer := g.signer()
	if !sameKey(signer.PublicKey, g.key.Public()) {
		return errors.New("ca-key.pem is not the key of the certificate in ca-cert.pem")
	}
	if !signer.IsCA || !signer.BasicConstraintsValid || signer.KeyUsage != 0 && signer.KeyUsage&x509.KeyUsageCertSign == 0 {
		return errors.New("ca-cert.pem: its certificate may not sign others")
	}
	_, err := signer.Verify(x509.VerifyOptions{
		Roots: pemtext.Pool(g.roots), Intermediates: pemtext.Pool(g.chain[1:]), CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	})
	if err != nil {
		return fmt.Errorf("ca-cert.pem does not lead to a root of root-cert.pem by way of cert-chain.pem: %w", err)
	}
	return nil
}

func sameKey(a, b crypto.PublicKey) bool {
	k, ok := a.(interface{ Equal(crypto.PublicKey) bool })
	return ok && k.Equal(b)
}

func contains(all []*x509.Certificate, c *x509.Certificate) bool {
	for _, other := range all {
		if other.Equal(c) {
			return true
		}
	}
	return false
}

// fingerprint names a certificate.
func fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return hex.EncodeToString(sum[:])
}

// maxCertificates bounds the certificates of one file.
const maxCertificates = 1000

// ParseCertificates reads PEM that holds certificates and nothing else. Errors
// name the file that was said and quote nothing of it.
func ParseCertificates(name string, text []byte) ([]*x509.Certificate, error) {
	var all []*x509.Certificate
	for block := range pemtext.Blocks(text) {
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("%s holds something that is not a certificate", name)
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: its certificate %d cannot be read", name, len(all)+1)
		}
		all = append(all, c)
		if len(all) > maxCertificates {
			break
		}
	}
	if len(all) == 0 || len(all) > maxCertificates {
		return nil, fmt.Errorf("%s holds no PEM certificate, or more than %d", name, maxCertificates)
	}
	return all, nil
}
