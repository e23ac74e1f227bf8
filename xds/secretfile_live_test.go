package xds

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
)

// filesTLS has the certificate in files of the Envoy's folder.
func filesTLS(dir, name string) *networking.ServerTLSSettings {
	return &networking.ServerTLSSettings{
		Mode: networking.ServerTLSSettings_SIMPLE, ServerCertificate: dir + "/" + name + ".crt", PrivateKey: dir + "/" + name + ".key",
	}
}

// writePair puts the tenant's certificate where its Gateway says.
func (e *edge) writePair(tenant string) {
	chain, key := e.authority.Issue(testbed.Subject{Name: tenant, Hosts: []string{tenant + ".example.com"}})
	e.envoy.WriteFile(tenant+".key", key)
	e.envoy.WriteFile(tenant+".crt", chain)
}

// timedOut is a secret that did not come before Envoy went on without it.
var timedOut = regexp.MustCompile(`init_fetch_timeout: [1-9]`)

// filesOf is a folder with the tenant's certificate that every Envoy can read.
func (e *edge) filesOf(tenant string) string {
	dir, err := os.MkdirTemp("", "files")
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { os.RemoveAll(dir) })
	chain, key := e.authority.Issue(testbed.Subject{Name: tenant, Hosts: []string{tenant + ".example.com"}})
	for name, content := range map[string][]byte{tenant + ".crt": chain, tenant + ".key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			e.t.Fatal(err)
		}
	}
	os.Chmod(dir, 0o755)
	return dir
}

// serves fails unless the tenant's host answers over TLS.
func (e *edge) serves(tenant, text string, certificates ...tls.Certificate) func() error {
	return func() error {
		answer, err := e.ask(tenant+".example.com", certificates...)
		if err == nil && answer != "200 "+text {
			err = fmt.Errorf("%s answers %s", tenant, answer)
		}
		return err
	}
}

// A certificate file that is missing is the matter of its own Gateway: others on
// its port are served, and what they change takes effect.
func TestR28AMissingCertificateFileConcernsItsOwnHosts(t *testing.T) {
	e := newEdge(t)
	e.writePair("b")
	a, b := tenantKey("Gateway", "a"), tenantKey("Gateway", "b")
	e.objects(tenantGateway("a", filesTLS(e.envoy.Dir, "a")), tenantGateway("b", filesTLS(e.envoy.Dir, "b")),
		answering("a", "a0"), answering("b", "b0"))
	e.await("b to be served", e.serves("b", "b0"))
	e.await("the refusal to be shown", e.stands(a, fleet.Rejected))
	e.await("b to be well", e.stands(b, fleet.Accepted))
	for r := range e.server.Object(e.snapshots.Latest(), e.fleet.Latest(), a).Proxies() {
		if !strings.Contains(r.Error, "a.crt") {
			t.Errorf("the refusal says %q", r.Error)
		}
	}
	if err := e.serves("a", "a0")(); err == nil {
		t.Error("a host without a certificate is served")
	}
	e.writePair("c")
	e.objects(tenantGateway("c", filesTLS(e.envoy.Dir, "c")), answering("c", "c0"))
	e.await("c to be served", e.serves("c", "c0"))
	e.writePair("a")
	e.await("a to be served once its files are there", e.serves("a", "a0"))
}

// The same holds for an Envoy that starts, of either variant: its listener does not
// wait for a secret that cannot be had.
func TestR28AnEnvoyStartsWithoutOneOfItsCertificateFiles(t *testing.T) {
	e := newEdge(t)
	e.rotate("one")
	e.envoy.Stop()
	e.objects(
		tenantGateway("a", filesTLS("/nowhere", "a")), answering("a", "a0"),
		tenantGateway("b", filesTLS(e.filesOf("b"), "b")), answering("b", "b0"),
	)
	for _, api := range []string{"DELTA_GRPC", "GRPC"} {
		e.envoy = testbed.StartEnvoy(t, testbed.EnvoyOptions{
			Name: "edge-" + api, Config: bytes.Replace(e.config, []byte("DELTA_GRPC"), []byte(api), 1), Namespace: e.namespace,
		})
		e.await(api+": b to be served", e.serves("b", "b0"))
		e.await(api+": what has its certificate from the hub to be served", func() error {
			_, err := e.dial("shop.example.com")
			return err
		})
		if stats, err := e.envoy.Admin("/stats?filter=init_fetch_timeout"); err != nil || timedOut.Match(stats) {
			t.Errorf("%s: a listener waited for a secret until it timed out: %v\n%s", api, err, stats)
		}
		if err := e.serves("a", "a0")(); err == nil {
			t.Errorf("%s: a host without a certificate is served", api)
		}
		e.envoy.Stop()
	}
}

// mutualTLS asks clients for certificates of the credential's authorities.
func mutualTLS(crl string) *networking.ServerTLSSettings {
	tls := simpleTLS()
	tls.Mode, tls.CaCrl = networking.ServerTLSSettings_MUTUAL, crl
	return tls
}

// A list of revoked certificates that is missing is the matter of the Gateways that name
// it. Others have the same credential; here it arrives after the listener.
func TestR05AMissingRevocationListConcernsItsOwnGateways(t *testing.T) {
	e := newEdge(t)
	partner := e.authority.TLS(testbed.Subject{Name: "partner"}).Certificates[0]
	former := e.authority.TLS(testbed.Subject{Name: "former"}).Certificates[0]
	e.envoy.WriteFile("crl.pem", e.authority.Revoke(former.Leaf))
	a, b, c := tenantKey("Gateway", "a"), tenantKey("Gateway", "b"), tenantKey("Gateway", "c")
	e.objects(
		tenantGateway("a", mutualTLS("/nowhere.pem")), answering("a", "a0"), tenantGateway("b", mutualTLS("")), answering("b", "b0"),
		tenantGateway("c", mutualTLS(e.envoy.Dir+"/crl.pem")), answering("c", "c0"),
	)
	e.await("the listener", e.answered("a", "a0"))
	e.rotate("one", "a.example.com", "b.example.com", "c.example.com")
	e.await("the refusal to be shown", e.stands(a, fleet.Rejected))
	for r := range e.server.Object(e.snapshots.Latest(), e.fleet.Latest(), a).Proxies() {
		if !strings.Contains(r.Error, "/nowhere.pem") {
			t.Errorf("the refusal says %q", r.Error)
		}
	}
	for _, key := range []federation.ObjectKey{b, c} {
		e.await(key.Name+" to be well", e.stands(key, fleet.Accepted))
		e.await(key.Name+" to be served", e.serves(key.Name, key.Name+"0", partner))
	}
	if err := e.serves("b", "b0", former)(); err != nil {
		t.Errorf("a certificate that b does not revoke: %v", err)
	}
	if err := e.serves("c", "c0", former)(); err == nil {
		t.Error("a revoked certificate is accepted")
	}
	if err := e.serves("a", "a0", partner)(); err == nil {
		t.Error("a host is served without the list that it asks for")
	}
	e.envoy.WriteFile("crl.pem", e.authority.Revoke(former.Leaf, partner.Leaf))
	e.await("the new list to be in force", func() error {
		if e.serves("c", "c0", partner)() == nil {
			return errors.New("c still serves whom the list revokes")
		}
		return nil
	})
	e.objects(tenantGateway("a", mutualTLS("")))
	e.await("a to be served", e.serves("a", "a0", partner))
	e.await("a to be well", e.stands(a, fleet.Accepted))
}

// Cipher suites that Envoy does not know, or that are repeated, are dropped; with the others
// Envoy accepts the listener.
func TestR27ARealEnvoyHasTheCipherSuitesThatItKnows(t *testing.T) {
	e := newEdge(t)
	e.rotate("one", "a.example.com", "b.example.com")
	odd := atVersion(networking.ServerTLSSettings_TLSV1_2)
	odd.CipherSuites = []string{"NOPE", "ECDHE-ECDSA-AES256-GCM-SHA384", "", "ALL", "ECDHE-ECDSA-AES256-GCM-SHA384", "TLS_AES_128_GCM_SHA256"}
	group := atVersion(networking.ServerTLSSettings_TLSV1_2)
	group.CipherSuites = []string{"[ECDHE-ECDSA-CHACHA20-POLY1305|ECDHE-RSA-CHACHA20-POLY1305]", "[AES128-SHA|NOPE]"}
	e.objects(tenantGateway("a", odd), tenantGateway("b", group), answering("a", "a0"), answering("b", "b0"))
	for tenant, want := range map[string]uint16{
		"a": tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, "b": tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
	} {
		e.await(tenant+" to be served", e.serves(tenant, tenant+"0"))
		e.await(tenant+" to be well", e.stands(tenantKey("Gateway", tenant), fleet.Accepted))
		c, err := e.dial(tenant + ".example.com")
		if err != nil {
			t.Fatal(err)
		}
		if got := c.conn.ConnectionState().CipherSuite; got != want {
			t.Errorf("%s is served with the suite %x, want %x", tenant, got, want)
		}
	}
}
