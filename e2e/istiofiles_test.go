package e2e

import (
	"crypto/tls"
	"fmt"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
)

// fileGateway has two hosts on one port, with certificates in files of the gateway. One of them demands certificates of callers.
const fileGateway = `apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: files, namespace: shop}
spec:
  selector: {app: ingress}
  servers:
  - port: {number: 8443, name: https, protocol: HTTPS}
    hosts: [web.example.com]
    tls: {mode: MUTUAL, serverCertificate: %[1]s/tls.crt, privateKey: %[1]s/tls.key, caCertificates: %[1]s/ca.crt}
  - port: {number: 8443, name: https-open, protocol: HTTPS}
    hosts: [open.example.com]
    tls: {mode: SIMPLE, serverCertificate: %[1]s/tls.crt, privateKey: %[1]s/tls.key}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: files, namespace: shop}
spec:
  hosts: [web.example.com, open.example.com]
  gateways: [files]
  http: [{route: [{destination: {host: web, port: {number: 8080}}}]}]
`

// TestU105AGatewayOfAnAgentHasFiles: an ingress gateway behind Istio's own agent ends TLS with files that are mounted into it, and
// verifies callers with them. It reads the files again when a kubelet replaces them.
func TestU105AGatewayOfAnAgentHasFiles(t *testing.T) {
	t.Parallel()
	w := newAgentFixture(t, "")
	server, ingress := w.pod("server"), w.pod("ingress")
	testbed.StartEcho(t, testbed.EchoOptions{Name: "server", Namespace: server.Namespace, HTTP: []int{8080}})
	for _, p := range []*agentPod{server, ingress} {
		p.agent.WaitReady(patience)
	}
	caller := testbed.NewNamespace(t, "caller")
	caller.Join(w.mesh, "10.78.0.99")
	first, second := testbed.NewAuthority(t, "first"), testbed.NewAuthority(t, "second")
	folder := ingress.agent.Mount("etc/web", certificateFiles(first))
	(&hub{Hub: w.hub}).change(t, "apply", map[string]any{"manifests": []string{fmt.Sprintf(fileGateway, folder)}})
	fileCallers(t, caller, first, second)
	dump := ingress.Get("http://127.0.0.1:15000/config_dump?resource=dynamic_active_secrets")
	for _, name := range []string{"file-cert:" + folder + "/tls.crt~" + folder + "/tls.key", "file-root:" + folder + "/ca.crt"} {
		if dump.Err != nil || !strings.Contains(string(dump.Body), fmt.Sprintf("%q", name)) {
			t.Errorf("the gateway has no secret %s: %v", name, dump.Err)
		}
	}
	ingress.agent.Mount("etc/web", certificateFiles(second))
	fileCallers(t, caller, second, first)
	noPanic(t, w.hub)
}

// certificateFiles are those of a gateway.
func certificateFiles(authority *testbed.Authority) map[string][]byte {
	chain, key := authority.Issue(testbed.Subject{Name: "web", Hosts: []string{"web.example.com", "open.example.com"}})
	return map[string][]byte{"tls.crt": chain, "tls.key": key, "ca.crt": authority.PEM}
}

// fileCallers has the gateway serve callers of the authority where it verifies them, and neither those of another one nor those without
// a certificate. It is known by a certificate of the authority.
func fileCallers(t *testing.T, from *testbed.Namespace, authority, other *testbed.Authority) {
	t.Helper()
	who := testbed.Subject{Name: "caller"}
	known, stranger := authority.TLS(who).Certificates, other.TLS(who).Certificates
	as := func(host string, certificates []tls.Certificate) *tls.Config {
		config := &tls.Config{RootCAs: authority.Pool(), ServerName: host}
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if len(certificates) == 0 {
				return &tls.Certificate{}, nil
			}
			return &certificates[0], nil
		}
		return config
	}
	testbed.WaitFor(t, patience, "an answer to a caller whom the gateway knows", func() error {
		answer, err := throughGateway(from.Client(as("web.example.com", known)), "web.example.com")
		if seen := answer.Header.Get("X-Forwarded-Client-Cert"); err == nil && !strings.Contains(seen, `Subject="CN=caller"`) {
			err = fmt.Errorf("the server sees %q", seen)
		}
		return err
	})
	testbed.WaitFor(t, patience, "an answer where nobody is asked for a certificate", func() error {
		_, err := throughGateway(from.Client(as("open.example.com", nil)), "open.example.com")
		return err
	})
	for told, certificates := range map[string][]tls.Certificate{"unknown certificate authority": stranger, "certificate required": nil} {
		if err := refusal(t, from, as("web.example.com", certificates)); !strings.Contains(err.Error(), told) {
			t.Errorf("a caller is told %v, want %s", err, told)
		}
	}
}

// refusal is what the gateway says to a caller that connects and waits. A request that is sent meanwhile could fail before the caller
// reads it.
func refusal(t *testing.T, from *testbed.Namespace, config *tls.Config) error {
	t.Helper()
	raw, err := from.DialContext(t.Context(), "tcp", agentPods["ingress"]+":8443")
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	if err := raw.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	_, err = tls.Client(raw, config).Read(make([]byte, 1))
	if err == nil {
		t.Fatal("the gateway sends something")
	}
	return err
}
