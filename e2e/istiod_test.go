package e2e

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

const istiodAddress = "10.78.0.6"

// TestU05IstiodBesideTheHub has the hub and a real istiod sign with one authority. A sidecar
// of each calls one of the other, in both directions with mutual TLS.
func TestU05IstiodBesideTheHub(t *testing.T) {
	t.Parallel()
	authority := testbed.NewAuthority(t, "mesh")
	folder := authority.Folder(t)
	w := newAgentFixture(t, "identity: {ca: files, caDir: "+folder+"}\n")
	istiod := w.istiod(w.kube, folder, "")
	ours, theirs := w.pod("server"), w.pod("legacy", byIstiod(istiod, authority))
	for name, p := range map[string]*agentPod{"server": ours, "legacy": theirs} {
		testbed.StartEcho(t, testbed.EchoOptions{Name: name, Namespace: p.Namespace, HTTP: []int{8080}})
		p.agent.WaitReady(patience)
	}
	awaitCall(t, ours, "10.96.0.11", "legacy", "server")
	awaitCall(t, theirs, "10.96.0.10", "web", "legacy")
	noPanic(t, w.hub)
}

// istiod runs beside the hub, with a cluster.
func (w *agentFixture) istiod(kube *testbed.Kube, folder, mesh string) *testbed.Istiod {
	w.t.Helper()
	at := testbed.NewNamespace(w.t, "istiod")
	at.Join(w.mesh, istiodAddress)
	return testbed.StartIstiod(w.t, testbed.IstiodOptions{Namespace: at, Address: istiodAddress, Kube: kube, CA: folder, Mesh: mesh})
}

// byIstiod has istiod serve the pod.
func byIstiod(istiod *testbed.Istiod, authority *testbed.Authority) func(*testbed.AgentOptions) {
	return func(o *testbed.AgentOptions) {
		o.Hub, o.Roots, o.Env = istiod.XDS, authority.PEM, []string{"ISTIOD_SAN=" + testbed.IstiodName}
	}
}

// awaitCall waits for an answer to the pod's request; the server sees the caller's identity.
func awaitCall(t *testing.T, from *agentPod, vip, service, account string) {
	t.Helper()
	host := service + ".shop.svc.cluster.local:8080"
	testbed.WaitFor(t, patience, service+" to answer "+account, func() error {
		answer := from.Get("http://"+net.JoinHostPort(vip, "8080")+"/", "Host", host)
		if answer.Err != nil || answer.Status != 200 {
			return fmt.Errorf("it answers %d, %w", answer.Status, answer.Err)
		}
		if got := answer.Echo(t).Header.Get("X-Forwarded-Client-Cert"); !strings.Contains(got, "URI=spiffe://cluster.local/ns/shop/sa/"+account) {
			return fmt.Errorf("the server sees the caller %q", got)
		}
		return nil
	})
}

// awaitRoute waits for an answer of web to the client. The request takes the route that says so.
func awaitRoute(t *testing.T, from *agentPod, route string) {
	t.Helper()
	awaitCall(t, from, "10.96.0.10", "web", "client")
	answer := from.Get("http://10.96.0.10:8080/", "Host", "web.shop.svc.cluster.local:8080")
	if got := answer.Echo(t).Header.Get("X-Route"); got != route {
		t.Errorf("the route is %q", got)
	}
}

// TestM11IstiodReadsTheHub has a real istiod whose only source of configuration is the hub, and
// a cluster of its own without services. A sidecar of istiod calls a service of the hub's
// cluster, and its requests take the route that the hub has.
func TestM11IstiodReadsTheHub(t *testing.T) {
	t.Parallel()
	authority := testbed.NewAuthority(t, "mesh")
	folder := authority.Folder(t)
	w := newAgentFixture(t, "identity: {ca: files, caDir: "+folder+"}\nmcp: {clients: [spiffe://cluster.local/ns/istio-system/sa/istiod]}\n")
	(&hub{Hub: w.hub}).change(t, "apply", map[string]any{"manifests": []string{`
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: shop}
spec:
  hosts: [web.shop.svc.cluster.local]
  http: [{headers: {request: {set: {x-route: of-the-hub}}}, route: [{destination: {host: web.shop.svc.cluster.local}}]}]
`}})
	at := testbed.NewNamespace(t, "istiod")
	at.Join(w.mesh, istiodAddress)
	tunnel(t, w, at, authority)
	theirs := testbed.StartKube(t, testbed.KubeOptions{Name: "c2", Namespace: at})
	theirs.Apply("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: shop\n")
	istiod := testbed.StartIstiod(t, testbed.IstiodOptions{
		Namespace: at, Address: istiodAddress, Kube: theirs, CA: folder, Mesh: "configSources: [{address: xds://127.0.0.1:15098}]\n",
	})
	server := w.pod("server")
	testbed.StartEcho(t, testbed.EchoOptions{Name: "server", Namespace: server.Namespace, HTTP: []int{8080}})
	caller := w.pod("client", byIstiod(istiod, authority), func(o *testbed.AgentOptions) {
		o.Token = theirs.ServiceAccountToken(testbed.TokenOptions{Namespace: "shop", Account: "client", Audience: "istio-ca"})
	})
	server.agent.WaitReady(patience)
	caller.agent.WaitReady(patience)
	awaitRoute(t, caller, "of-the-hub")
	noPanic(t, w.hub)
}

// TestM23IstiodIsRead has a hub read the configuration of a real istiod, whose cluster has it as custom resources. A
// sidecar of the hub takes the route that istiod has.
func TestM23IstiodIsRead(t *testing.T) {
	t.Parallel()
	authority := testbed.NewAuthority(t, "mesh")
	folder, dir := authority.Folder(t), t.TempDir()
	w := newAgentCluster(t)
	w.kube.Apply(testbed.Definitions(t, "../federation/config/schema/crds/istio.json.gz", "virtualservices.networking.istio.io")...)
	w.kube.Apply(`apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: shop}
spec:
  hosts: [web.shop.svc.cluster.local]
  http: [{headers: {request: {set: {x-route: of-istiod}}}, route: [{destination: {host: web.shop.svc.cluster.local}}]}]
`)
	istiod := w.istiod(w.kube, folder, "")
	cert, key := authority.Issue(testbed.Subject{Name: "isthmus", Hosts: []string{"spiffe://cluster.local/ns/istio-system/sa/isthmus"}})
	for name, content := range map[string][]byte{"ca.crt": authority.PEM, "hub.crt": cert, "hub.key": key} {
		write(t, filepath.Join(dir, name), string(content))
	}
	w.hub = w.startHub(fmt.Sprintf(`identity: {ca: files, caDir: %s}
mcp:
  servers:
  - name: istiod
    address: %s
    tls: {ca: %[3]s/ca.crt, cert: %[3]s/hub.crt, key: %[3]s/hub.key, serverName: %s}
`, folder, istiod.XDS, dir, testbed.IstiodName))
	server, caller := w.pod("server"), w.pod("client")
	testbed.StartEcho(t, testbed.EchoOptions{Name: "server", Namespace: server.Namespace, HTTP: []int{8080}})
	server.agent.WaitReady(patience)
	caller.agent.WaitReady(patience)
	awaitRoute(t, caller, "of-istiod")
	data, err := (&hub{Hub: w.hub}).operate(`{configSources {name problems {code message}}}`, nil)
	if err != nil || !strings.Contains(string(data), "MCP istiod") || strings.Contains(string(data), `"code"`) {
		t.Errorf("the sources are %s, %v", data, err)
	}
	noPanic(t, w.hub)
}

// tunnel runs the shipped Envoy beside istiod.
func tunnel(t *testing.T, w *agentFixture, at *testbed.Namespace, authority *testbed.Authority) {
	t.Helper()
	config, err := os.ReadFile("../deploy/envoy/istiod.yaml")
	if err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(w.hub.XDS)
	if err != nil {
		t.Fatal(err)
	}
	cert, key := authority.Issue(testbed.Subject{Name: "istiod", Hosts: []string{"spiffe://cluster.local/ns/istio-system/sa/istiod"}})
	testbed.StartEnvoy(t, testbed.EnvoyOptions{
		Name: "istiod-tunnel", Namespace: at, Files: map[string][]byte{"istiod.crt": cert, "istiod.key": key, "hub-ca.crt": w.hub.CA},
		Config: []byte(strings.NewReplacer(
			"{address: hub.isthmus.example, port_value: 15010}", "{address: "+host+", port_value: "+port+"}",
			"{san_type: DNS, matcher: {exact: hub.isthmus.example}}", "{san_type: IP_ADDRESS, matcher: {exact: "+host+"}}",
			"/etc/isthmus/", testbed.DirPlaceholder+"/",
		).Replace(string(config))),
	})
}
