package e2e

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

// tlsBackend is a service of the namespace store that takes TLS alone, with a route to it from NAME.example.com.
func tlsBackend(name, clusterIP string, port int) []string {
	return strings.Split(fmt.Sprintf(`apiVersion: v1
kind: Service
metadata: {name: %[1]s, namespace: store}
spec:
  clusterIP: %[2]s
  ports: [{name: tls, port: 443, targetPort: %[3]d, appProtocol: https}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %[1]s-1, namespace: store, labels: {kubernetes.io/service-name: %[1]s}}
addressType: IPv4
ports: [{name: tls, port: %[3]d, protocol: TCP, appProtocol: https}]
endpoints: [{addresses: [10.79.1.21], conditions: {ready: true}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: %[1]s, namespace: store}
spec:
  parentRefs: [{name: edge, sectionName: http}]
  hostnames: [%[1]s.example.com]
  rules:
  - backendRefs: [{name: %[1]s, port: 443}]
`, name, clusterIP, port), "---\n")
}

// backendPolicy has gateways speak TLS to the service, which has to prove the hostname to the authorities of backendRoots.
func backendPolicy(name, hostname string) string {
	return fmt.Sprintf(`apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {name: %[1]s, namespace: store}
spec:
  targetRefs: [{group: "", kind: Service, name: %[1]s}]
  validation: {hostname: %[2]s, caCertificateRefs: [{group: "", kind: ConfigMap, name: %[1]s-roots}]}
`, name, hostname)
}

func backendRoots(t *testing.T, name string, of *testbed.Authority) string {
	t.Helper()
	config, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name + "-roots", "namespace": "store"},
		"data": map[string]string{"ca.crt": string(of.PEM)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(config)
}

// speakTLS has the gateway speak TLS to a backend with a private authority: without the
// authority it sends nothing, and neither to a server whose certificate has another name.
func (r *gatewayRig) speakTLS(t *testing.T) {
	t.Helper()
	private := testbed.NewAuthority(t, "vaults")
	asked := startApp(t, "vault", r.servers, on(r.inside, 9443),
		private.TLS(testbed.Subject{Name: "vault", Hosts: []string{"vault.internal"}}))
	get := func() testbed.Response { return r.plain("vault.example.com", "/hello") }
	status := func(want int) func(testbed.Response) bool {
		return func(r testbed.Response) bool { return r.Status == want }
	}

	r.c1.Apply(append(tlsBackend("vault", "10.96.0.21", 9443), backendPolicy("vault", "vault.internal"))...)
	testbed.WaitFor(t, within, "the problems of the policy", func() error {
		found := r.hub.troubles(t)
		if !slices.Contains(found, "INVALID_CA_CERTIFICATE_REF BackendTLSPolicy.gateway.networking.k8s.io store/vault of cluster c1") {
			return fmt.Errorf("there are %q", found)
		}
		return nil
	})
	eventually(t, "nothing to be sent without authorities", get, status(http.StatusInternalServerError))
	r.c1.Apply(backendRoots(t, "vault", private))
	eventually(t, "the backend to answer by TLS", get, func(r testbed.Response) bool {
		var answer testbed.EchoAnswer
		return r.Status == http.StatusOK && json.Unmarshal(r.Body, &answer) == nil && answer.Name == "vault" &&
			answer.ServerName == "vault.internal"
	})
	r.c1.Apply(backendPolicy("vault", "other.internal"))
	eventually(t, "a certificate of another name to be refused", get, status(http.StatusServiceUnavailable))
	before := len(asked.requests("/hello"))
	if got := get(); got.Status != http.StatusServiceUnavailable || len(asked.requests("/hello")) != before {
		t.Errorf("the backend was asked, and the status is %d", got.Status)
	}
}

// presentCertificate has the gateway present the certificate of its Gateway to a backend that
// requires one: it gets it by SDS, and without it no request arrives (G83).
func (r *gatewayRig) presentCertificate(t *testing.T) {
	t.Helper()
	servers, clients := testbed.NewAuthority(t, "safes"), testbed.NewAuthority(t, "clients")
	config := servers.TLS(testbed.Subject{Name: "safe", Hosts: []string{"safe.internal"}})
	config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, clients.Pool()
	startApp(t, "safe", r.servers, on(r.inside, 9444), config)
	get := func() testbed.Response { return r.plain("safe.example.com", "/hello") }
	refused := func(r testbed.Response) bool { return r.Status == http.StatusServiceUnavailable }
	r.c1.Apply(strings.Replace(boutique, "  listeners:", "  tls: {backend: {clientCertificateRef: {name: client}}}\n  listeners:", 1))
	r.c1.Apply(append(tlsBackend("safe", "10.96.0.22", 9444), backendPolicy("safe", "safe.internal"), backendRoots(t, "safe", servers))...)
	testbed.WaitFor(t, within, "the problem of the Secret", func() error {
		found := r.hub.troubles(t)
		if !slices.Contains(found, "SECRET_MISSING secret c1/store/client") {
			return fmt.Errorf("there are %q", found)
		}
		return nil
	})
	eventually(t, "nothing to arrive without the Secret", get, refused)
	r.keepAs("client", clients, "edge.internal")
	eventually(t, "the backend to answer", get, answeredBy(t, "safe"))
	r.c1.Apply(boutique)
	eventually(t, "the backend to refuse a gateway without a certificate", get, refused)
}
