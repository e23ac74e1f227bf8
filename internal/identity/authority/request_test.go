package authority

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"
)

func must[K any](t testing.TB) func(K, error) K {
	return func(key K, err error) K {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
}

func extension(t testing.TB, id asn1.ObjectIdentifier, value any) x509.CertificateRequest {
	t.Helper()
	return x509.CertificateRequest{ExtraExtensions: []pkix.Extension{{Id: id, Value: must[[]byte](t)(asn1.Marshal(value))}}}
}

func TestCertificateSigningRequests(t *testing.T) {
	good := newKey(t)
	_, young, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := func(uris ...string) x509.CertificateRequest {
		var r x509.CertificateRequest
		for _, u := range uris {
			r.URIs = append(r.URIs, must[*url.URL](t)(url.Parse(u)))
		}
		return r
	}
	broken := requestPEM(t, template(), good)
	broken[len(broken)/2] ^= 1
	for name, c := range map[string]struct {
		text []byte
		want string
	}{
		"without names": {requestPEM(t, template(), good), ""},
		"its own name":  {requestPEM(t, template(web.String()), good), ""},
		"its own name without a trust domain (U56)": {requestPEM(t, template("spiffe:///ns/shop/sa/web"), good), ""},
		"another's without one":                     {requestPEM(t, template("spiffe:///ns/shop/sa/admin"), good), ErrOther.Error()},
		"DNS name":                                  {requestPEM(t, x509.CertificateRequest{DNSNames: []string{"a.example"}}, good), ""},
		"Ed25519":                                   {requestPEM(t, template(), young), ""},
		"RSA":                                       {requestPEM(t, template(), must[*rsa.PrivateKey](t)(rsa.GenerateKey(rand.Reader, 2048))), ""},
		"no authority":                              {requestPEM(t, extension(t, basicConstraints, struct{}{}), good), ""},
		"another's name":                            {requestPEM(t, template("spiffe://mesh.example/ns/shop/sa/admin"), good), ErrOther.Error()},
		"two names":                                 {requestPEM(t, template(web.String(), "spiffe://mesh.example/ns/kube-system/sa/x"), good), ErrOther.Error()},
		"P-224":                                     {requestPEM(t, template(), must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P224(), rand.Reader))), "P-224"},
		"authority":                                 {requestPEM(t, extension(t, basicConstraints, struct{ CA bool }{true}), good), "authority"},
		"may sign":                                  {requestPEM(t, extension(t, keyUsage, asn1.BitString{Bytes: []byte{4}, BitLength: 8}), good), "CA certificate"},
		"broken":                                    {broken, ""},
		"empty":                                     {nil, "PEM"},
		"two blocks":                                {append(requestPEM(t, template(), good), requestPEM(t, template(), good)...), "exactly one"},
		"a certificate":                             {encodeCertificate([]byte("x")), "exactly one"},
		"too long":                                  {make([]byte, MaxRequest+1), "at most"},
		"not PKCS 10":                               {[]byte("-----BEGIN CERTIFICATE REQUEST-----\nMAA=\n-----END CERTIFICATE REQUEST-----\n"), "PKCS"},
		"words after it":                            {append(requestPEM(t, template(), good), "hello"...), "exactly one"},
		"spaces after it":                           {append(requestPEM(t, template(), good), "\n\n"...), ""},
	} {
		key, err := ParseRequest(c.text, web)
		switch {
		case name == "broken":
			if err == nil {
				t.Errorf("a changed request is taken")
			}
		case c.want == "" && (err != nil || key == nil):
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestKeysOfRequestsAreStrong(t *testing.T) {
	weak := must[*rsa.PrivateKey](t)(rsa.GenerateKey(rand.Reader, 2048))
	weak.N.Rsh(weak.N, 1024)
	for name, key := range map[string]crypto.PublicKey{"RSA of 1024 bits": &weak.PublicKey, "none": nil, "another sort": "key"} {
		if checkKey(key) == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func FuzzParseRequest(f *testing.F) {
	key := newKey(f)
	f.Add(requestPEM(f, x509.CertificateRequest{}, key))
	f.Add(requestPEM(f, x509.CertificateRequest{URIs: []*url.URL{must[*url.URL](f)(url.Parse(web.String()))}}, key))
	f.Add(requestPEM(f, extension(f, basicConstraints, struct{ CA bool }{true}), key))
	f.Fuzz(func(t *testing.T, text []byte) {
		key, err := ParseRequest(text, web)
		if (key == nil) == (err == nil) {
			t.Errorf("key %v, error %v", key, err)
		}
		if err != nil && !errors.Is(err, ErrOther) && strings.Contains(err.Error(), "BEGIN") {
			t.Errorf("the error quotes the request: %v", err)
		}
	})
}

func FuzzParseRoots(f *testing.F) {
	root := must[generation](f)(newRoot("mesh.example", time.Now(), time.Hour))
	f.Add(encodeAll(root.roots))
	f.Add(append(encodeAll(root.roots), encodeAll(root.roots)...))
	f.Add([]byte("-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		roots, err := ParseRoots("roots", text)
		if (len(roots) == 0) == (err == nil) {
			t.Errorf("%d roots, error %v", len(roots), err)
		}
		for _, c := range roots {
			if !c.IsCA {
				t.Error("a root is not an authority")
			}
		}
	})
}

func FuzzParseWorkload(f *testing.F) {
	f.Add(web.String())
	f.Add("spiffe://Mesh.example/ns/shop/sa/web?x=1")
	f.Fuzz(func(t *testing.T, text string) {
		if w, err := ParseWorkload(text); err == nil && w.String() != text {
			t.Errorf("%q is read as %q", text, w)
		}
	})
}

// TestU56NamesWithoutATrustDomain have none, whatever the trust domain of the workload is.
func TestU56NamesWithoutATrustDomain(t *testing.T) {
	for _, domain := range []string{"mesh.example", "spiffe", "e"} {
		w := Workload{TrustDomain: domain, Namespace: "shop", ServiceAccount: "web"}
		name := must[*url.URL](t)(url.Parse("spiffe:///ns/shop/sa/web"))
		if _, err := ParseRequest(requestPEM(t, x509.CertificateRequest{URIs: []*url.URL{name}}, newKey(t)), w); err != nil {
			t.Errorf("in the trust domain %s: %v", domain, err)
		}
	}
}
