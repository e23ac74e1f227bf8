package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
)

// TestU04TheHubSignsItsOwnCertificate: clients of GraphQL and of xDS verify the hub by the
// names of the config file and the roots in the data folder.
func TestU04TheHubSignsItsOwnCertificate(t *testing.T) {
	dir, operators, mesh := shortDir(t), testbed.NewAuthority(t, "operators"), testbed.NewAuthority(t, "mesh")
	local := netip.MustParseAddr("127.0.0.1")
	graphql, discovery := fmt.Sprintf("127.0.0.1:%d", testbed.FreePort(t, nil, local)),
		fmt.Sprintf("127.0.0.1:%d", testbed.FreePort(t, nil, local))
	args := []string{
		"serve", "--data-dir", filepath.Join(dir, "data"), "--graphql-addr", graphql, "--xds-addr", discovery, "--health-addr",
		"unix:" + filepath.Join(dir, "health"),
		"--config",
		fileOf(t,
			"tls: {names: [127.0.0.1, istiod.istio-system.svc], clientCA: %s}\nclusters: [{id: c1, provider: Mock}]\nidentity: {bundles: [{trustDomain: cluster.local, file: %s, clusters: [c1]}]}\n",
			write(t, filepath.Join(dir, "clients"), string(operators.PEM)), write(t, filepath.Join(dir, "mesh"), string(mesh.PEM))),
	}
	startWithHealthAt(t, filepath.Join(dir, "health"), args)
	text, err := os.ReadFile(filepath.Join(dir, "data", "root-cert.pem"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		t.Fatalf("root-cert.pem has %s", text)
	}
	web := testbed.Subject{Name: "client", Hosts: []string{"spiffe://cluster.local/ns/shop/sa/web"}}
	of := func(authority *testbed.Authority, name string) *tls.Config {
		config := authority.TLS(web)
		config.RootCAs, config.ServerName = roots, name
		return config
	}
	for name, allowed := range map[string]bool{"": true, "127.0.0.1": true, "istiod.istio-system.svc": true, "other.istio-system.svc": false} {
		answer, err := tlsClient(of(operators, name)).Get("https://" + graphql + "/graphql?query=%7B__typename%7D")
		if err == nil {
			answer.Body.Close()
			leaf := answer.TLS.PeerCertificates[0]
			if len(leaf.URIs) > 0 || len(leaf.ExtKeyUsage) != 1 || leaf.ExtKeyUsage[0] != x509.ExtKeyUsageServerAuth ||
				time.Until(leaf.NotAfter) > 25*time.Hour {
				t.Errorf("the certificate has %v, %v and ends at %v", leaf.URIs, leaf.ExtKeyUsage, leaf.NotAfter)
			}
		}
		if (err == nil && answer.StatusCode == http.StatusOK) != allowed {
			t.Errorf("GraphQL as %q: %v, want allowed %v", name, err, allowed)
		}
		if err := getsClusters(t, discovery, of(mesh, name), "c1"); (err == nil) != allowed {
			t.Errorf("xDS as %q: %v, want allowed %v", name, err, allowed)
		}
	}
}
