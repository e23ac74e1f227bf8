package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

// partnerServer is a server outside the cluster, of another trust domain.
type partnerServer struct {
	name    string
	port    int
	signed  *testbed.Authority
	id      string // in its certificate
	strict  bool   // it trusts callers of its own domain alone
	refused string // why a handshake fails, as the server sees it: the client says so in a remote error. Empty: it does not
}

// partnerService is a service of one server, whose proxies would have the tlsMode of Istio's.
const partnerService = `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: %[1]s, namespace: shop}
spec:
  hosts: [%[1]s.partner.example]
  addresses: [240.240.8.%[2]d]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 8080, name: http, protocol: HTTP}]
  subjectAltNames: ["%[3]s"]
  endpoints: [{address: 10.78.0.98, ports: {http: %[2]d}, labels: {security.istio.io/tlsMode: istio}}]
`

// TestU06AgentsCallServersOfAnotherTrustDomain has a pod behind Istio's own agent call servers of another trust domain with mutual
// TLS. It refuses those whose root it does not trust, and those that have another name. A server refuses it that does not trust its root.
func TestU06AgentsCallServersOfAnotherTrustDomain(t *testing.T) {
	t.Parallel()
	partner, stranger := testbed.NewAuthority(t, "partner"), testbed.NewAuthority(t, "stranger")
	file := filepath.Join(t.TempDir(), "partner.pem")
	write(t, file, string(partner.PEM))
	w := newAgentFixture(t, fmt.Sprintf("identity: {bundles: [{trustDomain: partner.example, file: %s}]}\n", file))
	const id = "spiffe://partner.example/ns/orders/sa/server"
	servers := []partnerServer{
		{name: "trusted", port: 11, signed: partner, id: id},
		{name: "forged", port: 12, signed: stranger, id: id, refused: "remote error: tls: unknown certificate authority"},
		{name: "other", port: 13, signed: partner, id: id + "-2", refused: "remote error: tls: unknown certificate"},
		{name: "strict", port: 14, signed: partner, id: id, strict: true, refused: "x509: certificate signed by unknown authority"},
	}
	var manifests []string
	for _, s := range servers {
		manifests = append(manifests, fmt.Sprintf(partnerService, s.name, s.port, id))
	}
	(&hub{Hub: w.hub}).change(t, "apply", map[string]any{"manifests": manifests})
	client := w.pod("client", func(o *testbed.AgentOptions) {
		o.Env = append(o.Env, "PROXY_CONFIG_XDS_AGENT=true", "OUTPUT_CERTS=./etc/istio")
	})
	client.agent.WaitReady(patience)
	roots := client.roots(t)
	at := testbed.NewNamespace(t, "partner")
	at.Join(w.mesh, "10.78.0.98")
	for _, s := range servers {
		trusted := roots
		if s.strict {
			trusted = partner.Pool()
		}
		var handshakes testbed.LogText
		testbed.StartEcho(t, testbed.EchoOptions{
			Name: s.name, Namespace: at, HTTP: []int{s.port}, TLS: meshServer(s.signed, s.id, trusted), Errors: &handshakes,
		})
		testbed.WaitFor(t, patience, "the answer of "+s.name, func() error { return s.called(t, client, &handshakes) })
	}
	noPanic(t, w.hub)
}

// roots are those of the mesh, which the agent writes beside its certificate.
func (p *agentPod) roots(t *testing.T) *x509.CertPool {
	t.Helper()
	pool := x509.NewCertPool()
	testbed.WaitFor(t, patience, "the roots of the mesh", func() error {
		text, err := os.ReadFile(filepath.Join(p.agent.Dir, "etc/istio/root-cert.pem"))
		if err == nil && !pool.AppendCertsFromPEM(text) {
			err = errors.New("there are none")
		}
		return err
	})
	return pool
}

// meshServer has a server demand certificates of the mesh. It does not choose a protocol: Istio's names are not those of Go's server.
func meshServer(signed *testbed.Authority, id string, callers *x509.CertPool) *tls.Config {
	config := signed.TLS(testbed.Subject{Name: "server", Hosts: []string{id}})
	config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, callers
	return &tls.Config{
		Certificates:       config.Certificates,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return config, nil },
	}
}

// called reports what is wrong with an answer of the server.
func (s partnerServer) called(t *testing.T, client *agentPod, handshakes *testbed.LogText) error {
	answer := client.Get(fmt.Sprintf("http://240.240.8.%d:8080/", s.port), "Host", s.name+".partner.example:8080")
	if answer.Err != nil {
		return answer.Err
	}
	if s.refused == "" {
		if answer.Status != http.StatusOK {
			return fmt.Errorf("it answers %d %s", answer.Status, answer.Body)
		}
		got := answer.Echo(t).Peer // of the client's certificate, then of those that signed it
		if len(got) == 0 || got[0] != "spiffe://cluster.local/ns/shop/sa/client" {
			return fmt.Errorf("it sees the caller %q", got)
		}
		return nil
	}
	if answer.Status == http.StatusOK {
		t.Fatalf("%s answers", s.name)
	}
	if said := handshakes.String(); answer.Status != http.StatusServiceUnavailable || !strings.Contains(said, s.refused) {
		return fmt.Errorf("it answers %d %s, and the server says %s", answer.Status, answer.Body, said)
	}
	return nil
}
