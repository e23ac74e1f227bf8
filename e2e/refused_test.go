package e2e

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

// tenants are two teams whose Gateways share a port of one ingress Envoy.
type tenants struct {
	t         *testing.T
	hub       *hub
	envoy     *testbed.Envoy
	namespace *testbed.Namespace
	ca        *testbed.Authority
}

const tenantsIngress = "10.79.0.2"

func newTenants(t *testing.T) *tenants {
	w := &tenants{t: t, ca: testbed.NewAuthority(t, "tenants"), namespace: testbed.NewNamespace(t, "tenants")}
	chain, key := w.ca.Issue(testbed.Subject{Name: "tenants", Hosts: []string{"a.example.com", "b.example.com"}})
	w.hub = startHub(t, hubOptions{args: []string{"--secret-dir", w.credential(chain, key)}})
	w.namespace.AddLocal(tenantsIngress)
	config := bootstrap("ingress", tenantsIngress, "DELTA_GRPC", strings.TrimPrefix(w.hub.XDS, "unix:"))
	config = bytes.Replace(config, []byte("id: sidecar~"), []byte("id: router~"), 1)
	config = bytes.Replace(config, []byte("metadata: {"), []byte("metadata: {LABELS: {istio: ingressgateway}, "), 1)
	w.envoy = testbed.StartEnvoy(t, testbed.EnvoyOptions{Name: "tenants", Namespace: w.namespace, Config: config})
	w.envoy.WaitReady(patience)
	w.envoy.WriteFile("chain.pem", chain)
	w.envoy.WriteFile("key.pem", key)
	return w
}

// credential is a folder with what the gateway's namespace has under the name a-cert.
func (w *tenants) credential(chain, key []byte) string {
	w.t.Helper()
	dir := w.t.TempDir()
	at := filepath.Join(dir, "shop", "a-cert")
	if err := os.MkdirAll(at, 0o700); err != nil {
		w.t.Fatal(err)
	}
	for name, content := range map[string][]byte{"tls.crt": chain, "tls.key": key, "ca.crt": w.ca.PEM} {
		write(w.t, filepath.Join(at, name), string(content))
	}
	return dir
}

// tenant is the Gateway of a team, and its VirtualService, which answers with the text.
const tenant = `apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: %[1]s, namespace: team-%[1]s}
spec:
  selector: {istio: ingressgateway}
  servers:
  - {port: {number: 8443, name: https, protocol: HTTPS}, hosts: [%[1]s.example.com], tls: {%[2]s}}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: %[1]s, namespace: team-%[1]s}
spec:
  hosts: [%[1]s.example.com]
  gateways: [%[1]s]
  http: [{directResponse: {status: 200, body: {string: hello}}}]
`

func (w *tenants) apply(manifests ...string) {
	w.t.Helper()
	w.hub.change(w.t, "apply", map[string]any{"manifests": manifests})
}

func (w *tenants) team(name, settings string) {
	w.t.Helper()
	w.apply(fmt.Sprintf(tenant, name, settings))
}

// simple is TLS by files on the proxy, up to the version.
func (w *tenants) simple(version string) string {
	return fmt.Sprintf("mode: SIMPLE, serverCertificate: %[1]s/chain.pem, privateKey: %[1]s/key.pem, maxProtocolVersion: %[2]s",
		w.envoy.Dir, version)
}

// answers fails unless the team's host is served with that version of TLS.
func (w *tenants) answers(name string, version uint16) error {
	config := w.ca.TLS(testbed.Subject{Name: "caller"})
	config.ServerName = name + ".example.com"
	client := w.namespace.Client(config)
	request, err := http.NewRequest(http.MethodGet, "https://"+tenantsIngress+":8443/", nil)
	if err != nil {
		return err
	}
	request.Host = name + ".example.com"
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK || response.TLS.Version != version {
		return fmt.Errorf("%s answers %d by %s", name, response.StatusCode, tls.VersionName(response.TLS.Version))
	}
	return nil
}

func (w *tenants) await(what string, check func() error) {
	w.t.Helper()
	testbed.WaitFor(w.t, patience, what, check)
}

type finding struct{ Code, Field, Message string }

// rejected are the findings of the team's Gateway and VirtualService that name a proxy.
func (w *tenants) rejected(name string) (found []finding, err error) {
	var a struct {
		ConfigObjects struct {
			Nodes []struct{ Status struct{ Findings []finding } }
		}
	}
	err = w.hub.query(fmt.Sprintf(`{ configObjects(filter: {name: %q}) { nodes { status { findings { code field message } } } } }`, name), &a)
	for _, o := range a.ConfigObjects.Nodes {
		found = append(found, o.Status.Findings...)
	}
	return slices.DeleteFunc(found, func(f finding) bool { return f.Code != "REJECTED_BY_PROXY" }), err
}

// isRejected fails unless the team has exactly one such finding, with all of the words.
func (w *tenants) isRejected(name, field string, words ...string) func() error {
	return func() error {
		found, err := w.rejected(name)
		if err != nil || len(found) != 1 || found[0].Field != field {
			return fmt.Errorf("%s has the findings %+v, %w", name, found, err)
		}
		for _, word := range words {
			if !strings.Contains(found[0].Message, word) {
				return fmt.Errorf("no %q in %s", word, found[0].Message)
			}
		}
		return nil
	}
}

// isWell fails if a proxy rejects the team's configuration.
func (w *tenants) isWell(name string) func() error {
	return func() error {
		found, err := w.rejected(name)
		if err != nil || len(found) > 0 {
			return fmt.Errorf("%s has the findings %+v, %w", name, found, err)
		}
		return nil
	}
}

// TestR05ARefusedListenerThroughTheWholeHub: what one team writes is legal, and Envoy refuses the listener that it shares with
// another. The other's change of the same listener arrives, the first is served as before, and only its own objects say what was
// refused, and why.
func TestR05ARefusedListenerThroughTheWholeHub(t *testing.T) {
	t.Parallel()
	w := newTenants(t)
	const v12, v13 = tls.VersionTLS12, tls.VersionTLS13
	const mutual = "mode: MUTUAL, credentialName: a-cert"
	w.team("a", mutual)
	w.team("b", w.simple("TLSV1_3"))
	for _, name := range []string{"a", "b"} {
		w.await(name+" to answer", func() error { return w.answers(name, v13) })
	}
	t.Run("a missing list of revoked certificates", func(t *testing.T) {
		w.team("b", mutual)
		w.await("b to answer", func() error { return w.answers("b", v13) })
		w.team("a", mutual+", caCrl: /nowhere.pem")
		w.await("the status of a", w.isRejected("a", "spec.servers[0].tls.caCrl", `secret "kubernetes://a-cert-cacert~/nowhere.pem"`,
			"ingress.shop", "correct the object"))
		w.team("b", mutual+", maxProtocolVersion: TLSV1_2")
		w.await("the change of b", func() error { return w.answers("b", v12) })
		w.await("b to be well", w.isWell("b"))
		if err := w.answers("a", v13); err == nil {
			t.Error("a is served without the list that it asks for")
		}
		w.team("a", mutual)
		w.await("a to be well", w.isWell("a"))
		w.await("a to answer", func() error { return w.answers("a", v13) })
	})
	t.Run("an address that is not the proxy's", func(t *testing.T) {
		bound := strings.Replace(tenant, "hosts: [%[1]s.example.com], tls", "bind: 192.0.2.1, hosts: [%[1]s.example.com], tls", 1)
		w.apply(fmt.Sprintf(bound, "a", w.simple("TLSV1_3")))
		w.await("the status of a", w.isRejected("a", "spec.servers[0].bind", `listener "192.0.2.1_8443"`, "cannot bind"))
		w.team("b", w.simple("TLSV1_3"))
		w.await("the change of b", func() error { return w.answers("b", v13) })
		w.await("b to be well", w.isWell("b"))
		w.team("a", w.simple("TLSV1_2"))
		w.await("the correction of a", func() error { return w.answers("a", v12) })
		w.await("a to be well", w.isWell("a"))
	})
}
