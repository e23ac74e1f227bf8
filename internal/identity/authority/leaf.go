package authority

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/url"
	"time"

	"isthmus.dev/isthmus/federation"
)

// skew is the largest difference between the clocks of a mesh.
const skew = 2 * time.Minute

// organization marks the subject of what the hub signs; the unit beside it is
// the cluster in which the workload proved who it is.
const organization = "isthmus"

// Order is a certificate that is wanted.
type Order struct {
	Workload Workload
	Cluster  federation.ClusterID // in which the identity was proven
	Key      crypto.PublicKey
	Proven   time.Time     // when the workload last proved who it is, not by a certificate of the hub; zero: now
	Expired  time.Time     // when the token expired that the workload showed; zero: it showed none that has
	For      time.Duration // 0, and more than the policy allows: as long as the policy allows
}

// Leaf is a certificate that was signed.
type Leaf struct {
	Chain  []byte // PEM: the certificate, then what leads to a root, which is not in it
	Serial string // hexadecimal
	Begins time.Time
	Ends   time.Time
}

// sign makes the certificate of the order. It never ends after its signer.
func (g generation) sign(o Order, now time.Time, p Policy) (Leaf, error) {
	wanted := o.For
	if wanted <= 0 || wanted > p.Leaf {
		wanted = p.Leaf
	}
	proven, err := o.checkProof(now, p.Proof)
	if err != nil {
		return Leaf{}, err
	}
	extension, err := lastProofExtension(proven)
	if err != nil {
		return Leaf{}, err
	}
	template, err := g.template(now, wanted, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth)
	if err != nil {
		return Leaf{}, err
	}
	template.URIs = []*url.URL{{
		Scheme: "spiffe", Host: o.Workload.TrustDomain, Path: "/ns/" + o.Workload.Namespace + "/sa/" + o.Workload.ServiceAccount,
	}}
	template.ExtraExtensions = []pkix.Extension{extension}
	if o.Cluster != "" {
		template.Subject.OrganizationalUnit = []string{string(o.Cluster)}
	}
	if _, is := o.Key.(*rsa.PublicKey); is {
		template.KeyUsage |= x509.KeyUsageKeyEncipherment
	}
	der, err := x509.CreateCertificate(rand.Reader, template, g.signer(), o.Key, g.key)
	if err != nil {
		return Leaf{}, fmt.Errorf("signing the certificate of %s: %w", o.Workload, err)
	}
	return g.leaf(der, template), nil
}

// template is what all leaves of the signer have, with a life that never ends after the signer's.
func (g generation) template(now time.Time, life time.Duration, uses ...x509.ExtKeyUsage) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("making a serial number: %w", err)
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{Organization: []string{organization}},
		NotBefore:    now.Add(-skew).Truncate(time.Second),
		NotAfter:     earlier(now.Add(life), g.ends()).Truncate(time.Second),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  uses,

		BasicConstraintsValid: true,
	}, nil
}

func (g generation) leaf(der []byte, of *x509.Certificate) Leaf {
	return Leaf{
		Chain: append(encodeCertificate(der), encodeAll(g.between())...), Serial: of.SerialNumber.Text(16),
		Begins: of.NotBefore, Ends: of.NotAfter,
	}
}

// clusterOf is the cluster that one of the hub's own signers wrote into a leaf.
func clusterOf(leaf *x509.Certificate) (federation.ClusterID, bool) {
	if s := leaf.Subject; len(s.OrganizationalUnit) == 1 && len(s.Organization) == 1 && s.Organization[0] == organization {
		return federation.ClusterID(s.OrganizationalUnit[0]), true
	}
	return "", false
}

// NewKey makes the private key of a workload, and its PEM.
func NewKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making a key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("making a key: %w", err)
	}
	return key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func encodeCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func encodeAll(certificates []*x509.Certificate) []byte {
	var text []byte
	for _, c := range certificates {
		text = append(text, encodeCertificate(c.Raw)...)
	}
	return text
}
