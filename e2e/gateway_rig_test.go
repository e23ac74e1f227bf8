package e2e

import (
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

// webOfStore is the namespace store with the service web, whose addresses have the subnet.
const webOfStore = `apiVersion: v1
kind: Namespace
metadata: {name: store}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: store}
spec:
  clusterIP: 10.96.0.20
  ports: [{name: http, port: 80, targetPort: 9080}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: store, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: 9080, protocol: TCP}]
endpoints: [{addresses: [%s.21], conditions: {ready: true}}]
`

// gatewayOf is a gateway of a cluster, which the hub reads with the rights of our manifests alone.
type gatewayOf struct {
	subnet    string   // the first three bytes of the addresses of the network
	objects   []string // beside the service web of the namespace store
	manifests []string // files of deploy/kubernetes, for Secrets of the namespace store
	namespace string   // of the proxy
	labels    string
}

// gatewayRig is a cluster with a service web in the namespace store, a hub, a gateway and a client.
type gatewayRig struct {
	c1      *testbed.Kube
	hub     *hub
	ca      *testbed.Authority
	address string // of the gateway
	outside *testbed.Namespace
	servers *testbed.Namespace
	inside  string // address of the servers
}

func startGatewayRig(t *testing.T, o gatewayOf) *gatewayRig {
	t.Helper()
	r := &gatewayRig{ca: testbed.NewAuthority(t, "sites"), address: o.subnet + ".12"}
	mesh := testbed.NewNetwork(t, "mesh", o.subnet+".0/24")
	r.c1 = testbed.StartKube(t, testbed.KubeOptions{Name: "c1", ServiceCIDR: "10.96.0.0/16"})
	servers := testbed.NewNamespace(t, "servers")
	servers.Join(mesh, o.subnet+".20")
	servers.AddLocal(o.subnet + ".21")
	r.servers, r.inside = servers, o.subnet+".21"
	startApp(t, "web", servers, on(o.subnet+".21", 9080), nil)
	r.c1.Apply(strings.Split(fmt.Sprintf(webOfStore, o.subnet), "---\n")...)
	r.c1.Apply(o.objects...)
	for _, file := range append([]string{"reader.yaml", "secrets.yaml"}, o.manifests...) {
		manifest, err := os.ReadFile("../deploy/kubernetes/" + file)
		if err != nil {
			t.Fatal(err)
		}
		r.c1.Apply(strings.ReplaceAll(string(manifest), "namespace: edge", "namespace: store"))
	}
	access := r.c1.Admin
	access.Cert, access.Key = nil, nil
	access.Token = r.c1.ServiceAccountToken(testbed.TokenOptions{Namespace: "isthmus", Account: "isthmus-reader"})
	kubeconfig := filepath.Join(t.TempDir(), "c1")
	write(t, kubeconfig, string(access.Kubeconfig()))
	r.hub = startHub(t,
		hubOptions{config: fmt.Sprintf("clusters:\n- {id: c1, provider: Kubernetes, kubernetes: {kubeconfig: %s, secrets: true}}\n", kubeconfig)})
	place := testbed.NewNamespace(t, "gateway")
	place.Join(mesh, r.address)
	config := bootstrap("gateway", r.address, "DELTA_GRPC", strings.TrimPrefix(r.hub.XDS, "unix:"))
	for _, change := range [][2]string{
		{"id: sidecar~", "id: router~"},
		{"metadata: {", "metadata: {LABELS: {" + o.labels + "}, "},
		{".shop~shop.svc", "." + o.namespace + "~" + o.namespace + ".svc"},
		{"NAMESPACE: shop", "NAMESPACE: " + o.namespace},
	} {
		config = bytes.Replace(config, []byte(change[0]), []byte(change[1]), 1)
	}
	testbed.StartEnvoy(t, testbed.EnvoyOptions{Name: "gateway", Namespace: place, Config: config}).WaitReady(patience)
	r.outside = testbed.NewNamespace(t, "outside")
	r.outside.Join(mesh, o.subnet+".50")
	return r
}

// plain sends a request in plain text.
func (r *gatewayRig) plain(host, path string) testbed.Response {
	return r.outside.Get("http://"+r.address+path, "Host", host)
}

// secure sends a request by TLS to secure.example.com.
func (r *gatewayRig) secure(t *testing.T) testbed.Response {
	t.Helper()
	return getTLS(t, r.outside, r.address, "secure.example.com", r.ca)
}

// misdirected sends a request for other.example.com by a connection to secure.example.com.
func (r *gatewayRig) misdirected(t *testing.T) testbed.Response {
	t.Helper()
	return getOver(t, r.outside, r.address, "secure.example.com", "other.example.com", r.ca)
}

// keep gives the cluster the Secret of secure.example.com.
func (r *gatewayRig) keep() { r.keepAs("web-cert", r.ca, "secure.example.com") }

// keepAs gives the cluster a Secret with a certificate for the host.
func (r *gatewayRig) keepAs(name string, by *testbed.Authority, host string) {
	cert, key := by.Issue(testbed.Subject{Name: name, Hosts: []string{host}})
	r.c1.Apply(fmt.Sprintf("apiVersion: v1\nkind: Secret\ntype: kubernetes.io/tls\nmetadata: {name: %s, namespace: store}\ndata: {tls.crt: %s, tls.key: %s}\n",
		name, base64.StdEncoding.EncodeToString(cert), base64.StdEncoding.EncodeToString(key)))
}

// getTLS asks the address for /hello of the host, and verifies that this is who answers.
func getTLS(t *testing.T, from *testbed.Namespace, address, host string, roots *testbed.Authority) testbed.Response {
	t.Helper()
	return getOver(t, from, address, host, host, roots)
}

// getOver asks for /hello of the host by a connection to the server, with the client's own certificates.
func getOver(
	t *testing.T, from *testbed.Namespace, address, server, host string, roots *testbed.Authority, own ...tls.Certificate,
) testbed.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+"/hello", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = host
	answer, err := from.Client(&tls.Config{RootCAs: roots.Pool(), ServerName: server, Certificates: own}).Do(request)
	if err != nil {
		return testbed.Response{Err: err}
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return testbed.Response{Status: answer.StatusCode, Header: answer.Header, Body: body, Err: err}
}
