package testbed

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"
)

// An Authority signs the certificates of a test.
type Authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	PEM  []byte // Its own certificate.
}

// A Subject says what a certificate is for. A host is a name, an IP address or
// a URI such as a SPIFFE ID. Zero times are an hour ago and in a day.
type Subject struct {
	Name      string
	Groups    []string
	Hosts     []string
	NotBefore time.Time
	NotAfter  time.Time
}

// NewAuthority makes a certificate authority that is valid for a day.
func NewAuthority(t testing.TB, name string) *Authority {
	t.Helper()
	key := newKey(t)
	template := (Subject{Name: name}).template(t)
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = nil
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatalf("making the authority %s: %v", name, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatalf("making the authority %s: %v", name, err)
	}
	return &Authority{t: t, cert: cert, key: key, PEM: encode("CERTIFICATE", der)}
}

// Issue returns a certificate for servers and clients, and its key, in PEM.
func (a *Authority) Issue(subject Subject) (cert, key []byte) {
	a.t.Helper()
	private := newKey(a.t)
	der, err := x509.CreateCertificate(rand.Reader, subject.template(a.t), a.cert, private.Public(), a.key)
	if err != nil {
		a.t.Fatalf("issuing a certificate for %s: %v", subject.Name, err)
	}
	return encode("CERTIFICATE", der), encodeKey(a.t, private)
}

// Revoke returns a list that revokes these certificates of the authority, in PEM.
func (a *Authority) Revoke(certificates ...*x509.Certificate) []byte {
	a.t.Helper()
	list := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: time.Now().Add(-time.Hour), NextUpdate: time.Now().Add(24 * time.Hour)}
	for _, c := range certificates {
		list.RevokedCertificateEntries = append(list.RevokedCertificateEntries, x509.RevocationListEntry{
			SerialNumber: c.SerialNumber, RevocationTime: list.ThisUpdate,
		})
	}
	der, err := x509.CreateRevocationList(rand.Reader, list, a.cert, a.key)
	if err != nil {
		a.t.Fatalf("revoking certificates: %v", err)
	}
	return encode("X509 CRL", der)
}

// Pool returns the authority as the only root.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// TLS returns a configuration with a new certificate for the subject. It
// trusts this authority on both sides and does not ask for a peer certificate.
func (a *Authority) TLS(subject Subject) *tls.Config {
	a.t.Helper()
	pair, err := tls.X509KeyPair(a.Issue(subject))
	if err != nil {
		a.t.Fatalf("loading the certificate of %s: %v", subject.Name, err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: a.Pool(), ClientCAs: a.Pool()}
}

func (s Subject) template(t testing.TB) *x509.Certificate {
	t.Helper()
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 100))
	if err != nil {
		t.Fatalf("making a serial number: %v", err)
	}
	if s.NotBefore.IsZero() {
		s.NotBefore = time.Now().Add(-time.Hour)
	}
	if s.NotAfter.IsZero() {
		s.NotAfter = time.Now().Add(24 * time.Hour)
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: s.Name, Organization: s.Groups},
		NotBefore:    s.NotBefore,
		NotAfter:     s.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, host := range s.Hosts {
		addHost(t, template, host)
	}
	return template
}

func addHost(t testing.TB, template *x509.Certificate, host string) {
	t.Helper()
	if strings.Contains(host, "://") {
		uri, err := url.Parse(host)
		if err != nil {
			t.Fatalf("making a certificate for %s: %v", host, err)
		}
		template.URIs = append(template.URIs, uri)
		return
	}
	if address := literal(host); address.IsValid() {
		template.IPAddresses = append(template.IPAddresses, net.IP(address.AsSlice()))
		return
	}
	template.DNSNames = append(template.DNSNames, host)
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("making a key: %v", err)
	}
	return key
}

func encodeKey(t testing.TB, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatalf("encoding a key: %v", err)
	}
	return encode("EC PRIVATE KEY", der)
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// secret returns 128 random bits in hexadecimal digits.
func secret() string {
	var bits [16]byte
	rand.Read(bits[:])
	return hex.EncodeToString(bits[:])
}

// uuid returns a random UUID.
func uuid() string {
	s := secret()
	return s[:8] + "-" + s[8:12] + "-4" + s[13:16] + "-8" + s[17:20] + "-" + s[20:]
}
