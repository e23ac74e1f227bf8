package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/xds/xdstest"
)

// installKinds has the server serve the kinds of a module of which the names are.
func installKinds(t *testing.T, server *testbed.Kube, module string, names ...string) {
	t.Helper()
	server.Apply(testbed.Definitions(t, "../../federation/config/schema/crds/"+module+".json.gz", names...)...)
}

const customRoute = `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: shop}
spec: {hosts: [web.shop.svc.cluster.local], http: [{match: [{uri: {prefix: /%s}}], route: [{destination: {host: web.shop.svc.cluster.local}}]}]}
`

// restartedAlone restarts the hub while the API server of the cluster is stopped, which begins to
// answer afterwards: the hub has the objects that it read last (G68).
func restartedAlone(t *testing.T, h *hubUnderTest, home *testbed.Kube) *hubUnderTest {
	t.Helper()
	h.stop()
	home.Kill()
	h = startHubIn(t, h.dir)
	h.awaitSource(t, "CRD", func(s shownSource) bool {
		return len(s.Problems) == 1 && s.Problems[0].Code == "UNREACHABLE" && strings.Contains(s.Problems[0].Message, "before the hub started")
	})
	h.await(t, "the object, with the API server stopped", func() error {
		var found struct{ ConfigObject *struct{ YAML string } }
		err := h.query(`{configObject(group: "networking.istio.io", kind: "VirtualService", namespace: "shop", name: "web") {yaml}}`, &found)
		if err == nil && (found.ConfigObject == nil || !strings.Contains(found.ConfigObject.YAML, "/second")) {
			err = fmt.Errorf("it is %+v", found.ConfigObject)
		}
		return err
	})
	home.Restart()
	h.awaitPhase(t, "home", "READY")
	h.awaitSource(t, "CRD", func(s shownSource) bool { return len(s.Problems) == 0 })
	return h
}

// applied applies a manifest to the hub and returns what is wrong with it.
func (h *hubUnderTest) applied(t *testing.T, manifest string) string {
	t.Helper()
	var answer applyAnswer
	if err := h.query(fmt.Sprintf(`mutation {apply(input: {manifests: [%q]}) {revision userErrors {code message}}}`, manifest),
		&answer); err != nil {
		t.Fatal(err)
	}
	wrong := ""
	for _, e := range answer.Apply.UserErrors {
		wrong += e.Code + ": " + e.Message + "\n"
	}
	return wrong
}

const customSettings = `apiVersion: isthmus.dev/v1
kind: MeshSettings
metadata: {name: default}
spec: {sources: [{cluster: home, namespaces: [shop]%s}]}
`

// TestG04CustomResourceChangesARoute: with the rights of our manifests alone, a
// VirtualService of an attached cluster changes the route of a proxy, while the settings
// name the cluster, and no longer. The rights of the manifests are enough to write its status (G65).
func TestG04CustomResourceChangesARoute(t *testing.T) {
	t.Parallel()
	home, access := startHome(t, "custom-resources.yaml", "status.yaml")
	installKinds(t, home, "istio", "virtualservices.networking.istio.io")
	home.Apply(strings.Split(attachedService, "---\n")...)
	home.Apply(fmt.Sprintf(customRoute, "first"))
	h := startHub(t)
	if got := h.ask(t, "attachCluster", kubernetesInput("home", access)); got.refusals() != "" {
		t.Fatalf("attached: %+v", got)
	}
	h.awaitPhase(t, "home", "READY")
	if wrong := h.applied(t, fmt.Sprintf(customSettings, "")); wrong != "" {
		t.Fatal(wrong)
	}
	h.await(t, "the object for the proxies of its cluster", func() error {
		var found struct{ Own, Everywhere *struct{ Name string } }
		err := h.query(`{own: configObject(group: "networking.istio.io", kind: "VirtualService", namespace: "shop", name: "web", clusterID: "home") {name}
			everywhere: configObject(group: "networking.istio.io", kind: "VirtualService", namespace: "shop", name: "web") {name}}`, &found)
		if err == nil && (found.Own == nil || found.Everywhere != nil) {
			err = fmt.Errorf("there are %+v", found)
		}
		return err
	})

	server := "--server=unix:" + filepath.Join(h.dir, "graphql")
	if shown := mustRun(t, "get", "vs", "web", "-n", "shop", server); !strings.Contains(shown, "crd/home") {
		t.Errorf("get shows of the object of the cluster:\n%s", shown)
	}
	if shown := mustRun(t, "describe", "vs", "web", "-n", "shop", server); !strings.Contains(shown, "Cluster:    home\n") {
		t.Errorf("describe shows of the object of the cluster:\n%s", shown)
	}
	code, _, told := command(t, "history", "vs", "web", "-n", "shop", server)
	if code != 0 || !strings.Contains(told, "/web of cluster home was never changed through the hub") {
		t.Errorf("history of the object of the cluster: exit %d: %s", code, told)
	}
	code, _, told = command(t, "wait", "vs/web", "-n", "shop", server)
	if code != 0 || !strings.Contains(told, "/web of cluster home: ") {
		t.Errorf("wait for the object of the cluster: exit %d: %s", code, told)
	}

	client, _ := h.openClusters(t, nodeOf("caller"))
	if err := client.Send(xdstest.Request{Type: xdstest.RDS, Names: []string{"80"}}); err != nil {
		t.Fatal(err)
	}
	routes := func(has string) {
		t.Helper()
		for {
			answer, err := client.Receive(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := client.Ack(answer); err != nil {
				t.Fatal(err)
			}
			for name, r := range answer.Resources {
				text := string(r.GetValue())
				if name == "80" && strings.Contains(text, has) && (has != "" || !strings.Contains(text, "/first")) {
					return
				}
			}
		}
	}
	routes("")
	if wrong := h.applied(t, fmt.Sprintf(customSettings, ", scope: MESH")); wrong != "" {
		t.Fatal(wrong)
	}
	routes("/first")
	home.Apply(fmt.Sprintf(customRoute, "second"))
	routes("/second")
	t.Run("G65StatusWithShippedRights", func(t *testing.T) {
		if wrong := h.applied(t, fmt.Sprintf(customSettings, ", scope: MESH, status: true")); wrong != "" {
			t.Fatal(wrong)
		}
		h.await(t, "the status", func() error {
			answer := home.Do(http.MethodGet, "/apis/networking.istio.io/v1/namespaces/shop/virtualservices/web", nil)
			if text := string(answer.Body); !strings.Contains(text, `"type":"PassedAnalysis"`) || !strings.Contains(text, `"observedGeneration":2`) {
				return fmt.Errorf("the object is %s", text)
			}
			return nil
		})
	})
	h.awaitSource(t, "CRD", func(s shownSource) bool { return s.Kind == "CRD" && s.Revision != nil && len(s.Problems) == 0 })
	h = restartedAlone(t, h, home)
	if got := h.ask(t, "detachCluster", map[string]any{"clusterID": "home"}); got.refusals() != "" {
		t.Fatalf("detached: %+v", got)
	}
	h.awaitSource(t, "CRD", func(s shownSource) bool { return len(s.Problems) == 1 && s.Problems[0].Code == "CLUSTER_NOT_ATTACHED" })
	h.await(t, "nothing of the detached cluster", func() error {
		var left struct{ ConfigObject *struct{ Name string } }
		err := h.query(`{configObject(group: "networking.istio.io", kind: "VirtualService", namespace: "shop", name: "web") {name}}`, &left)
		if err == nil && left.ConfigObject != nil {
			err = fmt.Errorf("there is %+v", left.ConfigObject)
		}
		return err
	})
}
