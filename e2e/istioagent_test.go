package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

// The pods behind Istio's agent, all in the network of the mesh.
var agentPods = map[string]string{"server": "10.78.0.21", "client": "10.78.0.22", "ingress": "10.78.0.23", "legacy": "10.78.0.24"}

// TestU01IstiosAgentIsServed has pods behind Istio's own agent, unmodified, as an
// installation of Istio starts it: with the token of the pod, the cluster ID and the audience
// that are Istio's defaults, and DNS capture. They find each other by name, and
// their connections are mutual TLS with certificates that the hub signed. A gateway ends
// TLS with the Secret that a Gateway names (U03), and passes connections of another network on where a Gateway has
// AUTO_PASSTHROUGH (U02).
func TestU01IstiosAgentIsServed(t *testing.T) {
	t.Parallel()
	w := newAgentFixture(t, "")
	server, client, ingress := w.pod("server"), w.pod("client"), w.pod("ingress")
	testbed.StartEcho(t, testbed.EchoOptions{Name: "server", Namespace: server.Namespace, HTTP: []int{8080}})
	for _, p := range []*agentPod{server, client, ingress} {
		p.agent.WaitReady(patience)
	}
	w.sidecars(client)
	w.gateway()
	w.eastWest(client)
	noPanic(t, w.hub)
}

// sidecars has the client call the server by its name.
func (w *agentFixture) sidecars(client *agentPod) {
	t := w.t
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return client.DialContext(ctx, network, "10.78.0.53:53")
	}}
	vips, err := resolver.LookupHost(t.Context(), webHost+".")
	if err != nil || !slices.Equal(vips, []string{"10.96.0.10"}) {
		t.Fatalf("the name resolves to %s, %v", vips, err)
	}
	answer := client.Get("http://"+net.JoinHostPort(vips[0], "8080")+"/", "Host", webHost+":8080")
	if answer.Err != nil || answer.Status != 200 {
		t.Fatalf("it answers %d, %v", answer.Status, answer.Err)
	}
	if got := answer.Echo(t).Header.Get("X-Forwarded-Client-Cert"); !strings.Contains(got, "URI=spiffe://cluster.local/ns/shop/sa/client") {
		t.Errorf("the server sees the caller %q", got)
	}
}

// gateway has a caller without a proxy come by the gateway, with a certificate that the gateway
// verifies. The server gets to know the caller by what the gateway says (U28).
func (w *agentFixture) gateway() {
	t := w.t
	authority := testbed.NewAuthority(t, "the web")
	chain, key := authority.Issue(testbed.Subject{Name: "web", Hosts: []string{"web.example.com"}})
	w.kube.Apply(fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: web-cert, namespace: shop}\ntype: kubernetes.io/tls\ndata: {tls.crt: %s, tls.key: %s, ca.crt: %s}\n",
		base64.StdEncoding.EncodeToString(chain), base64.StdEncoding.EncodeToString(key), base64.StdEncoding.EncodeToString(authority.PEM)))
	(&hub{Hub: w.hub}).change(t, "apply", map[string]any{"manifests": []string{`
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: web, namespace: shop}
spec:
  selector: {app: ingress}
  servers:
  - {port: {number: 8443, name: https, protocol: HTTPS}, hosts: [web.example.com], tls: {mode: MUTUAL, credentialName: web-cert}}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: shop}
spec:
  hosts: [web.example.com]
  gateways: [web]
  http: [{route: [{destination: {host: web, port: {number: 8080}}}]}]
`}})
	caller := testbed.NewNamespace(t, "caller")
	caller.Join(w.mesh, "10.78.0.99")
	config := authority.TLS(testbed.Subject{Name: "caller"})
	config.ServerName = "web.example.com"
	client := caller.Client(config)
	testbed.WaitFor(t, patience, "an answer through the gateway", func() error {
		answer, err := throughGateway(client, "web.example.com")
		if err != nil {
			return err
		}
		client, caller, _ := strings.Cut(answer.Header.Get("X-Forwarded-Client-Cert"), ",")
		if !strings.Contains(client, `Subject="CN=caller"`) || !strings.Contains(caller, "URI=spiffe://cluster.local/ns/shop/sa/ingress") {
			return fmt.Errorf("the server sees the client %q and the caller %q", client, caller)
		}
		return nil
	})
}

// throughGateway sends a request for the host to the gateway.
func throughGateway(client *http.Client, host string) (answer testbed.EchoAnswer, err error) {
	request, err := http.NewRequest(http.MethodGet, "https://"+agentPods["ingress"]+":8443/", nil)
	if err != nil {
		return answer, err
	}
	request.Host = host
	response, err := client.Do(request)
	if err != nil {
		return answer, err
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return answer, fmt.Errorf("status %d: %w", response.StatusCode, err)
	}
	return answer, nil
}

// eastWest puts the client into another network, from which nothing but the gateway leads to the server. The gateway has no
// ROUTER_MODE: a Gateway says what it does. The server sees the certificate of the client.
func (w *agentFixture) eastWest(client *agentPod) {
	client.Exec("ip", "route", "add", "blackhole", agentPods["server"]+"/32")
	(&hub{Hub: w.hub}).change(w.t, "apply", map[string]any{"manifests": []string{`
apiVersion: isthmus.dev/v1
kind: MeshSettings
metadata: {name: default}
spec: {gatewayNamespaces: [shop]}
---
apiVersion: isthmus.dev/v1
kind: Network
metadata: {name: near}
spec: {cidrs: [10.78.0.0/24], gateways: [{address: ` + agentPods["ingress"] + `}]}
---
apiVersion: isthmus.dev/v1
kind: Network
metadata: {name: far}
spec: {cidrs: [` + agentPods["client"] + `/32]}
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: east-west, namespace: shop}
spec:
  selector: {app: ingress}
  servers:
  - {port: {number: 15443, name: tls, protocol: TLS}, hosts: ["*.local"], tls: {mode: AUTO_PASSTHROUGH}}
`}})
	awaitCall(w.t, client, "10.96.0.10", "web", "client")
}

// agentFixture is a cluster and a hub that authenticates its pods.
type agentFixture struct {
	t    *testing.T
	mesh *testbed.Network
	at   *testbed.Namespace // of the API server and the hub
	kube *testbed.Kube
	hub  *testbed.Hub
}

type agentPod struct {
	*testbed.Namespace
	agent *testbed.Agent
}

// newAgentFixture starts the cluster and the hub, whose config file begins with the text.
func newAgentFixture(t *testing.T, config string) *agentFixture {
	w := newAgentCluster(t)
	w.hub = w.startHub(config)
	return w
}

// newAgentCluster starts the cluster alone.
func newAgentCluster(t *testing.T) *agentFixture {
	w := &agentFixture{t: t, mesh: testbed.NewNetwork(t, "mesh", "10.78.0.0/24")}
	at := testbed.NewNamespace(t, "hub")
	w.at = at
	at.Join(w.mesh, "10.78.0.5")
	w.kube = testbed.StartKube(t, testbed.KubeOptions{Name: "c1", Namespace: at})
	w.kube.Apply("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: shop\n")
	for name, address := range agentPods {
		testbed.Pod{
			Namespace: "shop", Name: name, Account: name, Labels: "{app: " + name + ", security.istio.io/tlsMode: istio}", Address: address,
		}.Run(w.kube)
	}
	w.service("web", "10.96.0.10", "server")
	w.service("legacy", "10.96.0.11", "legacy")
	return w
}

// startHub runs a hub with the cluster.
func (w *agentFixture) startHub(config string) *testbed.Hub {
	w.t.Helper()
	kubeconfig := filepath.Join(w.t.TempDir(), "c1")
	write(w.t, kubeconfig, string(w.kube.Kubeconfig()))
	return testbed.StartHub(w.t, testbed.HubOptions{Program: binary.Path(w.t), Namespace: w.at, Proven: true, Config: config + fmt.Sprintf(`
clusters:
- {id: c1, aliases: [Kubernetes], provider: Kubernetes, kubernetes: {kubeconfig: %s, secrets: true}}
`, kubeconfig)})
}

// service is one in front of a pod.
func (w *agentFixture) service(name, vip, pod string) {
	w.kube.Apply(fmt.Sprintf(`apiVersion: v1
kind: Service
metadata: {name: %[1]s, namespace: shop}
spec:
  clusterIP: %[2]s
  selector: {app: %[3]s}
  ports: [{name: http, port: 8080, targetPort: 8080}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: %[1]s-1
  namespace: shop
  labels: {kubernetes.io/service-name: %[1]s}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints: [{addresses: [%[4]s], conditions: {ready: true}, targetRef: {kind: Pod, namespace: shop, name: %[3]s}}]
`, name, vip, pod, agentPods[pod]))
}

func (w *agentFixture) uid(pod string) string {
	var found struct{ Metadata struct{ UID string } }
	w.kube.Do(http.MethodGet, "/api/v1/namespaces/shop/pods/"+pod, nil).Decode(w.t, &found)
	return found.Metadata.UID
}

// pod is a pod whose traffic Istio's agent and its proxy carry, as the hub says.
func (w *agentFixture) pod(name string, change ...func(*testbed.AgentOptions)) *agentPod {
	w.t.Helper()
	p := &agentPod{Namespace: testbed.NewNamespace(w.t, name)}
	p.Join(w.mesh, agentPods[name])
	router := name == "ingress"
	if !router {
		p.Capture(testbed.ProxyUID)
		p.CaptureDNS(testbed.ProxyUID)
	}
	o := testbed.AgentOptions{
		Namespace: p.Namespace, Pod: "shop/" + name, Account: name, Address: agentPods[name], Cluster: "Kubernetes",
		Labels: map[string]string{"app": name, "security.istio.io/tlsMode": "istio"},
		Token: w.kube.ServiceAccountToken(testbed.TokenOptions{
			Namespace: "shop", Account: name, Audience: "istio-ca",
			Pod: name, PodUID: w.uid(name),
		}),
		Hub: w.hub.XDS, Roots: w.hub.CA, Router: router, Env: []string{"ISTIO_META_DNS_CAPTURE=true"},
	}
	for _, f := range change {
		f(&o)
	}
	p.agent = testbed.StartAgent(w.t, o)
	return p
}
