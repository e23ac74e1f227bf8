package docs

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/deploy/testbed/kubelet"
	"isthmus.dev/isthmus/deploy/testbed/toolset"
)

const (
	istiosHub    = "10.80.0.5"
	istiosIstiod = "10.80.0.6"
	istiosCaller = "10.80.0.20"
)

// istiosUser is an installation of Istio: a cluster with the namespace shop, istiod with a CA that was
// plugged in, and pods of Istio's own agents. It does what controllers, kubelets and the injection do.
type istiosUser struct {
	*readersMachine
	mesh     *testbed.Network
	kube     *testbed.Kube
	node     *kubelet.Node // of the pods
	istiod   *testbed.Istiod
	istiodAt *testbed.Namespace
	root     []byte
	folder   string // of Istio's release
	pods     int    // of the Deployment web that have been made
	served   *istiosPod
}

type istiosPod struct {
	*testbed.Namespace
	name  string
	agent *testbed.Agent
}

// istiosObjects are what the namespace has, and what istiod's mesh has.
const istiosObjects = `apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: Namespace
metadata: {name: istio-system}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: default, namespace: istio-system}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: istio, namespace: istio-system}
data: {mesh: "accessLogFile: /dev/stdout"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {serviceAccountName: web, containers: [{name: main, image: none}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  clusterIP: 10.96.0.10
  selector: {app: web}
  ports: [{name: http, port: 8080, targetPort: 8080}]
---
apiVersion: v1
kind: Service
metadata: {name: caller, namespace: shop}
spec:
  clusterIP: 10.96.0.11
  selector: {app: caller}
  ports: [{name: http, port: 8080, targetPort: 8080}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: shop}
spec:
  hosts: [web]
  http: [{headers: {request: {set: {x-route: of-the-shop}}}, route: [{destination: {host: web}}]}]
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: web, namespace: shop}
spec: {host: web, trafficPolicy: {loadBalancer: {simple: ROUND_ROBIN}}}
---
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: default, namespace: shop}
spec: {mtls: {mode: STRICT}}
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: web, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  rules: [{from: [{source: {principals: [cluster.local/ns/shop/sa/caller]}}]}]
---
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: odd, namespace: shop}
spec:
  workloadSelector: {labels: {app: nothing}}
  configPatches: [{applyTo: CLUSTER, patch: {operation: MERGE, value: {connect_timeout: 3s}}}]
`

// newIstiosUser starts the installation. Nothing of it knows the hub.
func newIstiosUser(t *testing.T) *istiosUser {
	t.Helper()
	w := &istiosUser{readersMachine: newMachine(t), mesh: testbed.NewNetwork(t, "mesh", "10.80.0.0/24")}
	w.Join(w.mesh, istiosHub)
	w.folder = istioRelease(t)
	work := filepath.Join(w.dir, "work")
	for _, what := range []string{"root-ca", "istiod-cacerts"} {
		command := exec.CommandContext(t.Context(), "make", "-f", w.folder+"/tools/certs/Makefile.selfsigned.mk", what)
		command.Dir = work
		if printed, err := command.CombinedOutput(); err != nil {
			t.Fatalf("making %s: %v\n%s", what, err, printed)
		}
	}
	w.root = []byte(read(t, filepath.Join(work, "root-cert.pem")))
	w.kube = testbed.StartKube(t, testbed.KubeOptions{Name: "c1", Namespace: w.Namespace})
	w.kube.Apply(testbed.Definitions(t, "../federation/config/schema/crds/istio.json.gz")...)
	w.kube.Apply(strings.Split(istiosObjects, "---\n")...)
	w.node = kubelet.Start(t, w.Namespace, w.kube)
	w.istiodAt = testbed.NewNamespace(t, "istiod")
	w.istiodAt.Join(w.mesh, istiosIstiod)
	w.istiod = testbed.StartIstiod(t, testbed.IstiodOptions{
		Namespace: w.istiodAt, Address: istiosIstiod, Kube: w.kube, CA: filepath.Join(work, "istiod"),
	})
	w.shim(t, "make", `[ "$*" = build ] || exec /usr/bin/make "$@"`)
	w.shim(t, "istioctl", "exec "+installed(t, toolset.Istioctl)+` "$@"`)
	return w
}

// istioRelease is the folder of Istio's module, which has the certificate tools of a release.
func istioRelease(t *testing.T) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", "istio.io/istio")
	command.Dir = "../deploy/testbed/istio"
	printed, err := command.Output()
	var found struct{ Dir string }
	if err == nil {
		err = json.Unmarshal(printed, &found)
	}
	if err != nil {
		t.Fatalf("finding the tools of Istio: %v", err)
	}
	return found.Dir
}

func installed(t *testing.T, tool string) string {
	t.Helper()
	path, there, err := toolset.Locate(tool)
	if err != nil || !there {
		t.Fatalf("there is no %s: %v; run make tools", tool, err)
	}
	return path
}

// pod is a pod with the sidecar that the injection gives it: with istiod's address, for its certificate, too, and what the
// annotation says.
func (w *istiosUser) pod(t *testing.T, name, app, address, annotation string) *istiosPod {
	t.Helper()
	testbed.Pod{
		Namespace: "shop", Name: name, Account: app, Labels: "{app: " + app + ", security.istio.io/tlsMode: istio}", Address: address,
	}.Run(w.kube)
	var made struct{ Metadata struct{ UID string } }
	w.kube.Do(http.MethodGet, "/api/v1/namespaces/shop/pods/"+name, nil).Decode(t, &made)
	const control = testbed.IstiodName + ":15012"
	config := map[string]any{"discoveryAddress": control}
	if annotation != "" {
		if err := json.Unmarshal([]byte(annotation), &config); err != nil {
			t.Errorf("the annotation %q: %v", annotation, err)
		}
	}
	p := &istiosPod{Namespace: testbed.NewNamespace(t, name), name: name}
	p.Join(w.mesh, address)
	p.Capture(testbed.ProxyUID)
	w.node.Forward(kubelet.Port{Namespace: "shop", Pod: name, Number: 15000}, p.Namespace, "127.0.0.1:15000")
	p.agent = testbed.StartAgent(t, testbed.AgentOptions{
		Namespace: p.Namespace, Pod: "shop/" + name, Account: app, Address: address, Cluster: "Kubernetes",
		Labels: map[string]string{"app": app, "security.istio.io/tlsMode": "istio"},
		Token: w.kube.ServiceAccountToken(testbed.TokenOptions{
			Namespace: "shop", Account: app, Audience: "istio-ca", Pod: name, PodUID: made.Metadata.UID,
		}),
		Roots: w.root, Config: config, Env: []string{"CA_ADDR=" + control},
		Hosts: map[string]string{testbed.IstiodName: istiosIstiod, "hub.isthmus.svc": istiosHub},
	})
	testbed.StartEcho(t, testbed.EchoOptions{Name: name, Namespace: p.Namespace, HTTP: []int{8080}})
	p.agent.WaitReady(patience)
	w.kube.Apply(fmt.Sprintf(`apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: %[1]s-1
  namespace: shop
  labels: {kubernetes.io/service-name: %[1]s}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints: [{addresses: [%[2]s], conditions: {ready: true}, targetRef: {kind: Pod, namespace: shop, name: %[3]s}}]
`, app, address, name))
	return p
}

// calls sends a request to a service and returns who answers, as whom the caller is seen, and which route it took.
func (p *istiosPod) calls(t *testing.T, service, vip string) (name, caller, route string, err error) {
	answer := p.Get("http://"+vip+":8080/", "Host", service+":8080")
	if answer.Err != nil {
		return "", "", "", fmt.Errorf("asking %s: %w", service, answer.Err)
	}
	if answer.Status != http.StatusOK {
		return "", "", "", fmt.Errorf("%s answers %d: %s", service, answer.Status, answer.Body)
	}
	echo := answer.Echo(t)
	return echo.Name, echo.Header.Get("X-Forwarded-Client-Cert"), echo.Header.Get("X-Route"), nil
}

// awaitCalls waits until both pods call each other with mutual TLS, and the way to web is as its VirtualService says.
func awaitCalls(t *testing.T, caller, web *istiosPod) {
	t.Helper()
	testbed.WaitFor(t, patience, web.name+" and the caller to call each other", func() error {
		name, seen, route, err := caller.calls(t, "web", "10.96.0.10")
		if err != nil {
			return err
		}
		if name != web.name || route != "of-the-shop" || !strings.Contains(seen, "URI=spiffe://cluster.local/ns/shop/sa/caller") {
			return fmt.Errorf("%s answers to %q by the route %q", name, seen, route)
		}
		_, seen, _, err = web.calls(t, "caller", "10.96.0.11")
		if err == nil && !strings.Contains(seen, "URI=spiffe://cluster.local/ns/shop/sa/web") {
			err = fmt.Errorf("the caller sees %q", seen)
		}
		return err
	})
}

// rollsOut waits for another annotation of the Deployment web, and replaces its pod as controllers and kubelets do.
func (w *istiosUser) rollsOut(t *testing.T, caller *istiosPod, before, after string, gone <-chan struct{}) string {
	t.Helper()
	const path = "/apis/apps/v1/namespaces/shop/deployments/web"
	var deployment struct {
		Metadata struct{ Generation int }
		Spec     struct {
			Template struct {
				Metadata struct{ Annotations map[string]string }
			}
		}
	}
	annotation := ""
	testbed.WaitFor(t, patience, "the reader to change the Deployment", func() error {
		select {
		case <-gone:
			return nil
		default:
		}
		deployment.Spec.Template.Metadata.Annotations = nil
		w.kube.Do(http.MethodGet, path, nil).Decode(t, &deployment)
		annotation = deployment.Spec.Template.Metadata.Annotations["proxy.istio.io/config"]
		if annotation == before {
			return fmt.Errorf("the annotation is %q", annotation)
		}
		return nil
	})
	if annotation == before {
		return annotation
	}
	old := w.served
	w.served = w.pod(t, after, "web", fmt.Sprintf("10.80.0.%d", 30+w.pods), annotation)
	w.pods++
	awaitCalls(t, caller, w.served)
	old.agent.Stop()
	w.kube.ApplyStatus(fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
status: {observedGeneration: %d, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1}
`, deployment.Metadata.Generation))
	return annotation
}

// asks sends requests to web until it is told to end, and then returns what failed.
func (p *istiosPod) asks(t *testing.T) (end func() []error) {
	var asking sync.WaitGroup
	var failed []error
	ended := make(chan struct{})
	asking.Go(func() {
		for {
			select {
			case <-ended:
				return
			default:
			}
			if _, _, _, err := p.calls(t, "web", "10.96.0.10"); err != nil {
				failed = append(failed, fmt.Errorf("at %s: %w", time.Now().UTC().Format("15:04:05.000"), err))
			}
		}
	})
	end = sync.OnceValue(func() []error {
		close(ended)
		asking.Wait()
		return failed
	})
	t.Cleanup(func() { end() }) // of a test that fails
	return end
}

// TestU64ANamespaceMovesFromIstiodAndBackAsInTheGuide follows the guide with a real istiod, Istio's own agents and its
// command line, which also compares what the hub sent with what a proxy has, by a forwarded port (U96). Meanwhile a workload that stays
// with istiod sends requests: none fails. Not done are:
//   - the Service and the EndpointSlice of a hub outside of the cluster, beyond their manifests: nothing here balances
//     connections to Services. The pods find the hub by its name as they would with them.
//   - what controllers, kubelets and injection do for a changed Deployment: the test does it.
//   - the gateway of step 5, beyond its rights and the setting: TestU01 has one.
func TestU64ANamespaceMovesFromIstiodAndBackAsInTheGuide(t *testing.T) {
	t.Parallel()
	w := newIstiosUser(t)
	caller := w.pod(t, "caller-1", "caller", istiosCaller, "")
	w.served, w.pods = w.pod(t, "web-0", "web", "10.80.0.30", ""), 1
	awaitCalls(t, caller, w.served)
	w.prepares(t)
	w.compares(t)
	w.moves(t)
	end := caller.asks(t)
	annotation := ""
	w.elsewhere = append(w.elsewhere, func(gone <-chan struct{}) {
		annotation = w.rollsOut(t, caller, "", "web-1", gone)
	}, func(gone <-chan struct{}) {
		w.rollsOut(t, caller, annotation, "web-2", gone)
	})
	w.withOwn("ISTIO/tools", w.folder+"/tools", "hub.example:15012", "hub.isthmus.svc:15012")
	w.do(t, true, w.kubeconfig(t))
	if failed := end(); len(failed) > 0 {
		t.Errorf("%d requests failed, first %v", len(failed), failed[0])
	}
	awaitCalls(t, caller, w.served)
}

// kubeconfig is the variable with the reader's kubeconfig, whose context is c1.
func (w *istiosUser) kubeconfig(t *testing.T) string {
	t.Helper()
	named := strings.NewReplacer("name: default\n  context", "name: c1\n  context", "current-context: default", "current-context: c1")
	return "KUBECONFIG=" + write(t, filepath.Join(w.dir, "kubeconfig"), []byte(named.Replace(string(w.kube.Kubeconfig()))))
}

const toMove = "move-from-istio.md"

// prepares has the reader start the hub beside istiod.
func (w *istiosUser) prepares(t *testing.T) {
	t.Helper()
	w.types("echo " + istiosHub + " hub.isthmus.svc >> /etc/hosts")
	w.reads(t, "install.md", "## Prepare certificates", "## Run it as a service")
	w.reads(t, toMove, "## Before you begin", "## 1. Let the hub sign under the same root")
	w.writes(t, "service.yaml", toMove, "yaml", "kind: Service\n")
	w.writes(t, "slice.yaml", toMove, "yaml", "kind: EndpointSlice")
	w.types("kubectl apply -f service.yaml -f slice.yaml")
	w.types(`token=$(kubectl create token isthmus-reader -n isthmus)
install -d /etc/isthmus
kubectl config view --raw --minify > /etc/isthmus/c1.kubeconfig
user=$(kubectl config view --minify -o jsonpath='{.users[0].name}')
kubectl config delete-user $user --kubeconfig /etc/isthmus/c1.kubeconfig
kubectl config set-credentials $user --token=$token --kubeconfig /etc/isthmus/c1.kubeconfig`)
	w.reads(t, toMove, "## 1. Let the hub sign under the same root", "## 2. Give the hub Istio's objects")
	w.types("hub=$!\nisthmus describe cluster c1 | grep READY")
}

// compares has the reader give the hub the objects of Istio, and look at them.
func (w *istiosUser) compares(t *testing.T) {
	t.Helper()
	w.reads(t, toMove, "## 2. Give the hub Istio's objects", "## 4. Move one workload")
	for _, kind := range []string{"virtualservices", "destinationrules", "authorizationpolicies"} {
		w.types("isthmus get " + kind + " web -n shop -o wide | grep -E ' 0 +0 *$'")
	}
	w.types("isthmus get envoyfilters odd -n shop -o wide | tee odd | grep odd\nif grep -E ' 0 +0 *$' odd; then exit 1; fi")
}

// moves has the reader move the workload, and back.
func (w *istiosUser) moves(t *testing.T) {
	t.Helper()
	w.reads(t, toMove, "## 4. Move one workload", "## 5. Move the rest")
	w.types("isthmus get proxies | grep 'web-1.*SYNCED'\nistioctl proxy-status --xds-address hub.isthmus.svc:15012 -n shop | grep web-1.shop")
	w.reads(t, agentsPage, "proxy's own `config_dump`:", "| istioctl shows | if the proxy |")
	for _, of := range []string{"Clusters", "Listeners", "Routes"} {
		w.types("again \"istioctl proxy-status web-1.shop --xds-address hub.isthmus.svc:15012 | grep '" + of + " Match'\"")
	}
	w.reads(t, toMove, "## 5. Move the rest", "## Move back")
	w.types("sed -i 's/c1.kubeconfig}/c1.kubeconfig, secrets: true}/' /etc/isthmus/isthmus.yaml\nkill $hub; wait $hub || true")
	w.types("isthmus serve --config /etc/isthmus/isthmus.yaml --data-dir /var/lib/isthmus")
	w.types("isthmus describe cluster hub\nisthmus get proxies | grep 'web-1.*SYNCED'")
	w.reads(t, toMove, "## Move back", "")
	w.types("if isthmus get proxies | grep web-2; then exit 1; fi\nkill $!; wait $! || true")
}
