package authority

import (
	"crypto/rand"
	"crypto/x509"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/federation"
)

// by makes a leaf whose names the test says.
func (g generation) by(t *testing.T, change func(*x509.Certificate)) []*x509.Certificate {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		URIs: []*url.URL{uri(t, web.String())},
	}
	change(template)
	der, err := x509.CreateCertificate(rand.Reader, template, g.signer(), newKey(t).Public(), g.key)
	if err != nil {
		t.Fatal(err)
	}
	return certificates(t, encodeCertificate(der))
}

func uri(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestS01ExactlyOneIdentityOfAKnownTrustDomain(t *testing.T) {
	r := newRig(t, nil)
	mine, _ := r.signing()
	trust := r.trust()
	named := func(all ...string) func(*x509.Certificate) {
		return func(c *x509.Certificate) {
			c.URIs = nil
			for _, text := range all {
				c.URIs = append(c.URIs, uri(t, text))
			}
		}
	}
	for name, c := range map[string]struct {
		change func(*x509.Certificate)
		want   string // of the error; empty: it is accepted
	}{
		"good":               {named(web.String()), ""},
		"no URI":             {named(), "no URI SAN"},
		"two URIs":           {named(web.String(), web.String()), "more than one URI SAN"},
		"query":              {named(web.String() + "?x=1"), "path segment"},
		"port":               {named("spiffe://mesh.example:8443/ns/shop/sa/web"), "trust domain"},
		"upper case":         {named("spiffe://Mesh.example/ns/shop/sa/web"), "trust domain"},
		"user":               {named("spiffe://a@mesh.example/ns/shop/sa/web"), "trust domain"},
		"https":              {named("https://mesh.example/ns/shop/sa/web"), "scheme"},
		"foreign domain":     {named("spiffe://other.example/ns/shop/sa/web"), "not known here"},
		"another form":       {named("spiffe://mesh.example/web"), "has not the form"},
		"longer":             {named(web.String() + "/x"), "has not the form"},
		"no path":            {named("spiffe://mesh.example"), "has not the form"},
		"authority":          {func(c *x509.Certificate) { c.IsCA, c.BasicConstraintsValid = true, true }, "CA flag"},
		"may sign":           {func(c *x509.Certificate) { c.KeyUsage |= x509.KeyUsageCertSign }, "KeyCertSign"},
		"ended":              {func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }, "expired"},
		"not yet":            {func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) }, "expired or is not yet valid"},
		"for servers alone":  {func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }, "not for clients"},
		"a DNS name besides": {func(c *x509.Certificate) { c.DNSNames = []string{"admin.example"} }, ""},
	} {
		proof, err := trust.Verify(mine.by(t, c.change))
		switch {
		case c.want == "" && (err != nil || proof.Workload != web):
			t.Errorf("%s: %+v, %v", name, proof, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if _, err := trust.Verify(nil); err == nil {
		t.Error("nothing is proven by nothing")
	}
}

func (r *rig) signing() (generation, bool) { return r.Authority.now().current(r.now) }

// A root counts for its own trust domain alone, and the cluster comes from who
// signed, never from what somebody else wrote into a certificate (S1).
func TestS01TheIssuerTellsTheCluster(t *testing.T) {
	r := newRig(t, nil)
	foreign, err := newRoot("other.example", r.now, 100*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(file, encodeAll(foreign.roots), 0o600); err != nil {
		t.Fatal(err)
	}
	claims := func(domain string) func(*x509.Certificate) {
		return func(c *x509.Certificate) {
			c.URIs = []*url.URL{uri(t, "spiffe://"+domain+"/ns/shop/sa/web")}
			c.Subject.Organization, c.Subject.OrganizationalUnit = []string{organization}, []string{"c1"}
		}
	}
	of := func(clusters ...federation.ClusterID) BundleFile {
		return BundleFile{TrustDomain: "other.example", File: file, Clusters: clusters}
	}
	local := of("c3")
	local.TrustDomain = "mesh.example"
	for name, c := range map[string]struct {
		files    []BundleFile
		domain   string
		refused  bool
		clusters []federation.ClusterID
	}{
		"a bundle of no cluster":       {[]BundleFile{of()}, "other.example", false, nil},
		"a bundle of one":              {[]BundleFile{of("c2")}, "other.example", false, []federation.ClusterID{"c2"}},
		"a bundle of two":              {[]BundleFile{of("c4", "c2")}, "other.example", false, []federation.ClusterID{"c2", "c4"}},
		"the hub's own domain":         {[]BundleFile{of("c2")}, "mesh.example", true, nil},
		"the hub's own domain by file": {[]BundleFile{local}, "mesh.example", false, []federation.ClusterID{"c3"}},
	} {
		proof, err := r.trust(c.files...).Verify(foreign.by(t, claims(c.domain)))
		if c.refused != (err != nil) || !slices.Equal(proof.Clusters, c.clusters) {
			t.Errorf("%s: clusters %v, %v", name, proof.Clusters, err)
		}
	}
}

func TestTrustBundlesFollowTheirFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "roots.pem")
	write := func(text []byte) {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var roots [2]generation
	for i := range roots {
		var err error
		roots[i], err = newRoot("other.example", time.Now(), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
	}
	write(encodeAll(roots[0].roots))
	r := newRig(t, nil)
	trust := r.trust(BundleFile{TrustDomain: "other.example", File: file})
	changed := trust.Changed()
	write([]byte("nothing"))
	if err := trust.reload(0); err == nil || !contains(trust.bundles()["other.example"], roots[0].signer()) {
		t.Error("a file that cannot be read took the roots away")
	}
	write(encodeAll([]*x509.Certificate{roots[0].signer(), roots[1].signer()}))
	if err := trust.reload(0); err != nil {
		t.Error(err)
	}
	select {
	case <-changed:
	default:
		t.Error("the channel is not closed")
	}
	if all := trust.Bundles(); len(all) != 2 || len(certificates(t, all["other.example"])) != 2 ||
		len(certificates(t, all["mesh.example"])) != 1 {
		t.Errorf("bundles are %v", all)
	}
}

func TestTrustBundlesThatStopTheStart(t *testing.T) {
	dir := t.TempDir()
	leaf := newRig(t, nil).issue(Order{})
	for name, text := range map[string]string{"leaf": string(encodeCertificate(leaf.Raw)), "empty": "", "words": "hello"} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenTrust(TrustOptions{Files: []BundleFile{{TrustDomain: "other.example", File: file}}}); err == nil ||
			!strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := OpenTrust(TrustOptions{Files: []BundleFile{{TrustDomain: "Other.example", File: "x"}}}); err == nil {
		t.Error("an upper-case trust domain is taken")
	}
}
