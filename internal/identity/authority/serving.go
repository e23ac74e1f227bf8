package authority

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"
)

// SignServing signs a certificate of a server with these names and addresses: for as long as
// the policy allows for workloads, and never beyond its signer. It has no SPIFFE ID, and
// proves nothing about a client.
func (a *Authority) SignServing(names []string, key crypto.PublicKey) (Leaf, error) {
	now := a.o.Now()
	g, err := a.signer(now)
	if err != nil {
		return Leaf{}, err
	}
	return g.signServing(names, key, now, a.o.Policy.Leaf)
}

func (g generation) signServing(names []string, key crypto.PublicKey, now time.Time, life time.Duration) (Leaf, error) {
	template, err := g.template(now, life, x509.ExtKeyUsageServerAuth)
	if err != nil {
		return Leaf{}, err
	}
	for _, name := range names {
		if ip, err := netip.ParseAddr(name); err == nil {
			template.IPAddresses = append(template.IPAddresses, net.IP(ip.AsSlice()))
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, g.signer(), key, g.key)
	if err != nil {
		return Leaf{}, fmt.Errorf("signing the certificate for %s: %w", strings.Join(names, ", "), err)
	}
	return g.leaf(der, template), nil
}
