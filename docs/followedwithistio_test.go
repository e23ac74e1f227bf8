package docs

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"isthmus.dev/isthmus/deploy/testbed"
)

const (
	besideIstio     = "with-istio.md"
	istiosReviews   = "10.80.0.40" // an instance of the datacenter
	istiodOfCluster = `apiVersion: apps/v1
kind: Deployment
metadata: {name: istiod, namespace: istio-system}
spec:
  replicas: 1
  selector: {matchLabels: {app: istiod}}
  template:
    metadata: {labels: {app: istiod}}
    spec: {serviceAccountName: istiod, containers: [{name: discovery, image: none}]}
`
)

// TestU65IstiodReadsTheHubAsInTheGuide follows the guide with a real istiod, a Consul server and Istio's own agents. Istiod's
// proxies reach the service of the datacenter by the route that the hub has, and also when the hub is gone; the custom resources
// of istiod's cluster stay in force. istioctl shows what they have
// (U97). Not done is what controllers and kubelets do for the changed Deployment of istiod: the test does it.
func TestU65IstiodReadsTheHubAsInTheGuide(t *testing.T) {
	t.Parallel()
	w := newIstiosUser(t)
	w.kube.Apply(istiodOfCluster)
	consul := testbed.StartConsul(t, testbed.ConsulOptions{Namespace: w.Namespace})
	consul.Put("/v1/catalog/register", map[string]any{
		"Node": "vm-1", "Address": istiosReviews, "Service": map[string]any{"ID": "reviews-1", "Service": "reviews", "Port": 8080},
	})
	vm := testbed.NewNamespace(t, "reviews")
	vm.Join(w.mesh, istiosReviews)
	testbed.StartEcho(t, testbed.EchoOptions{Name: "reviews", Namespace: vm, HTTP: []int{8080}})
	caller := w.pod(t, "caller-1", "caller", istiosCaller, "")
	web := w.pod(t, "web-0", "web", "10.80.0.30", "")
	awaitCalls(t, caller, web)

	w.installs(t)
	w.types("isthmus cluster attach dc1 --consul-address " + consul.URL + " --network default")
	w.types(`cat > reviews.yaml <<'END'
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: reviews, namespace: shop}
spec:
  hosts: [reviews.service.consul]
  http: [{headers: {request: {set: {x-route: of-the-hub}}}, route: [{destination: {host: reviews.service.consul}}]}]
END
isthmus apply -f reviews.yaml`)
	w.reads(t, besideIstio, "## 1. Give istiod a certificate for the hub", "## 3. Call the services")
	w.waits(t, "calling", func() {
		awaitReviews(t, caller)
		awaitCalls(t, caller, web)
	})
	ask := strings.TrimSpace(blocksOf(section(t, read(t, besideIstio), "## 3. Call the services"), "sh")[0])
	w.types("again '" + ask + " | grep EDS'") // the other pod may have it first
	w.reads(t, besideIstio, "## 3. Call the services", "## What istiod gets")
	w.types("grep 'a control plane reads the configuration' /var/lib/hub.log | grep ns/istio-system/sa/istiod\nsystemctl stop isthmus")
	w.reads(t, besideIstio, "## Undo", "")
	w.elsewhere = slices.Insert(w.elsewhere, 0, func(gone <-chan struct{}) { w.restartsIstiod(t, gone) })
	w.withOwn("hub.example", "localhost")
	w.do(t, true, w.kubeconfig(t))
	awaitReviews(t, caller)
}

// awaitReviews waits until the instance of the datacenter answers by the hub's route.
func awaitReviews(t *testing.T, caller *istiosPod) {
	t.Helper()
	testbed.WaitFor(t, patience, "an answer of the datacenter", func() error {
		name, _, route, err := caller.calls(t, "reviews.service.consul", "198.51.100.1")
		if err == nil && (name != "reviews" || route != "of-the-hub") {
			err = fmt.Errorf("%s answers by the route %q", name, route)
		}
		return err
	})
}

// restartsIstiod waits for the patch of istiod's Deployment, and replaces its pod: an Envoy with the files of the Secret, and istiod
// with the mesh configuration of the page.
func (w *istiosUser) restartsIstiod(t *testing.T, gone <-chan struct{}) {
	t.Helper()
	const path = "/apis/apps/v1/namespaces/istio-system/deployments/istiod"
	var deployment struct {
		Metadata struct{ Generation int }
		Spec     struct {
			Template struct {
				Spec struct{ Containers []struct{ Args []string } }
			}
		}
	}
	testbed.WaitFor(t, patience, "the reader to change istiod's Deployment", func() error {
		select {
		case <-gone:
			return nil
		default:
		}
		w.kube.Do(http.MethodGet, path, nil).Decode(t, &deployment)
		if n := len(deployment.Spec.Template.Spec.Containers); n != 2 {
			return fmt.Errorf("it has %d containers", n)
		}
		return nil
	})
	var secret struct{ Data map[string][]byte }
	w.kube.Do(http.MethodGet, "/api/v1/namespaces/istio-system/secrets/isthmus-client", nil).Decode(t, &secret)
	if len(secret.Data) == 0 {
		return // the reader has come to an end before
	}
	config := strings.NewReplacer("address: localhost,", "address: "+istiosHub+",", "/etc/isthmus/", testbed.DirPlaceholder+"/").
		Replace(string(secret.Data["istiod.yaml"]))
	testbed.StartEnvoy(t, testbed.EnvoyOptions{Name: "beside-istiod", Namespace: w.istiodAt, Files: secret.Data, Config: []byte(config)})
	w.istiod.Stop()
	blocks := blocksOf(read(t, besideIstio), "yaml")
	var settings struct{ Data struct{ Mesh string } }
	at := slices.IndexFunc(blocks, func(b string) bool { return strings.Contains(b, "configSources:") })
	if err := yaml.Unmarshal([]byte(blocks[at]), &settings); err != nil {
		t.Fatal(err)
	}
	w.istiod = testbed.StartIstiod(t, testbed.IstiodOptions{
		Namespace: w.istiodAt, Address: istiosIstiod, Kube: w.kube, CA: filepath.Join(w.dir, "work", "istiod"), Mesh: settings.Data.Mesh,
	})
	w.kube.ApplyStatus(fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: istiod, namespace: istio-system}
status: {observedGeneration: %d, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1}
`, deployment.Metadata.Generation))
}
