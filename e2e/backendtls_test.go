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

// vault is a service that takes TLS alone.
const vault = `apiVersion: v1
kind: Service
metadata: {name: vault, namespace: store}
spec:
  clusterIP: 10.96.0.21
  ports: [{name: tls, port: 443, targetPort: 9443, appProtocol: https}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: vault-1, namespace: store, labels: {kubernetes.io/service-name: vault}}
addressType: IPv4
ports: [{name: tls, port: 9443, protocol: TCP, appProtocol: https}]
endpoints: [{addresses: [10.79.1.21], conditions: {ready: true}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: vault, namespace: store}
spec:
  parentRefs: [{name: edge, sectionName: http}]
  hostnames: [vault.example.com]
  rules:
  - backendRefs: [{name: vault, port: 443}]
---
`

const vaultPolicy = `apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {name: vault, namespace: store}
spec:
  targetRefs: [{group: "", kind: Service, name: vault}]
  validation: {hostname: %s, caCertificateRefs: [{group: "", kind: ConfigMap, name: vault-roots}]}
`

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

	r.c1.Apply(append(strings.Split(strings.TrimSuffix(vault, "---\n"), "---\n"), fmt.Sprintf(vaultPolicy, "vault.internal"))...)
	testbed.WaitFor(t, within, "the problems of the policy", func() error {
		found := r.hub.troubles(t)
		if !slices.Contains(found, "INVALID_CA_CERTIFICATE_REF BackendTLSPolicy.gateway.networking.k8s.io store/vault of cluster c1") {
			return fmt.Errorf("there are %q", found)
		}
		return nil
	})
	eventually(t, "nothing to be sent without authorities", get, status(http.StatusInternalServerError))
	config, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "vault-roots", "namespace": "store"},
		"data": map[string]string{"ca.crt": string(private.PEM)},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.c1.Apply(string(config))
	eventually(t, "the backend to answer by TLS", get, func(r testbed.Response) bool {
		var answer testbed.EchoAnswer
		return r.Status == http.StatusOK && json.Unmarshal(r.Body, &answer) == nil && answer.Name == "vault" &&
			answer.ServerName == "vault.internal"
	})
	r.c1.Apply(fmt.Sprintf(vaultPolicy, "other.internal"))
	eventually(t, "a certificate of another name to be refused", get, status(http.StatusServiceUnavailable))
	before := len(asked.requests("/hello"))
	if got := get(); got.Status != http.StatusServiceUnavailable || len(asked.requests("/hello")) != before {
		t.Errorf("the backend was asked, and the status is %d", got.Status)
	}
}

// safe is a service that takes TLS alone, and asks clients for certificates.
const safe = `apiVersion: v1
kind: Service
metadata: {name: safe, namespace: store}
spec:
  clusterIP: 10.96.0.22
  ports: [{name: tls, port: 443, targetPort: 9444, appProtocol: https}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: safe-1, namespace: store, labels: {kubernetes.io/service-name: safe}}
addressType: IPv4
ports: [{name: tls, port: 9444, protocol: TCP, appProtocol: https}]
endpoints: [{addresses: [10.79.1.21], conditions: {ready: true}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: safe, namespace: store}
spec:
  parentRefs: [{name: edge, sectionName: http}]
  hostnames: [safe.example.com]
  rules:
  - backendRefs: [{name: safe, port: 443}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {name: safe, namespace: store}
spec:
  targetRefs: [{group: "", kind: Service, name: safe}]
  validation: {hostname: safe.internal, caCertificateRefs: [{group: "", kind: ConfigMap, name: safe-roots}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: safe-roots, namespace: store}
data: {ca.crt: %s}
`

// presentCertificate has the gateway present the certificate of its Gateway to a backend that
// requires one: it gets it by SDS, and without it no request arrives (G83).
func (r *gatewayRig) presentCertificate(t *testing.T) {
	t.Helper()
	servers, clients := testbed.NewAuthority(t, "safes"), testbed.NewAuthority(t, "clients")
	config := servers.TLS(testbed.Subject{Name: "safe", Hosts: []string{"safe.internal"}})
	config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, clients.Pool()
	startApp(t, "safe", r.servers, on(r.inside, 9444), config)
	roots, err := json.Marshal(string(servers.PEM))
	if err != nil {
		t.Fatal(err)
	}
	get := func() testbed.Response { return r.plain("safe.example.com", "/hello") }
	refused := func(r testbed.Response) bool { return r.Status == http.StatusServiceUnavailable }
	r.c1.Apply(strings.Replace(boutique, "  listeners:", "  tls: {backend: {clientCertificateRef: {name: client}}}\n  listeners:", 1))
	r.c1.Apply(strings.Split(fmt.Sprintf(safe, roots), "---\n")...)
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
