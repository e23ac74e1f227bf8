package writeback_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/federation/config/writeback/wanted"
)

const (
	classPath   = "/apis/gateway.networking.k8s.io/v1/gatewayclasses/isthmus"
	gatewayPath = "/apis/gateway.networking.k8s.io/v1/namespaces/shop/gateways/edge"
	routePath   = "/apis/gateway.networking.k8s.io/v1/namespaces/shop/httproutes/web"
	policyPath  = "/apis/networking.istio.io/v1/namespaces/shop/virtualservices/web"
	ingressPath = "/apis/networking.k8s.io/v1/namespaces/shop/ingresses/web"
)

const gatewayObjects = `apiVersion: v1
kind: Namespace
metadata:
  name: shop
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata:
  name: isthmus
spec:
  controllerName: isthmus.dev/gateway-controller
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata:
  name: edge
  namespace: shop
spec:
  gatewayClassName: isthmus
  listeners:
  - name: http
    port: 8080
    protocol: HTTP
`

func route(backend string) string {
	return fmt.Sprintf(`{"apiVersion":"gateway.networking.k8s.io/v1","kind":"HTTPRoute","metadata":{"name":"web","namespace":"shop"},
		"spec":{"parentRefs":[{"name":"edge"}],"rules":[{"backendRefs":[{"name":%q,"port":80}]}]}}`, backend)
}

func virtualService(to string) string {
	return fmt.Sprintf(`{"apiVersion":"networking.istio.io/v1","kind":"VirtualService","metadata":{"name":"web","namespace":"shop"},
		"spec":{"hosts":["web"],"http":[{"route":[{"destination":{"host":%q}}]}]}}`, to)
}

func TestStatusOfOneServer(t *testing.T) {
	server := testbed.StartKube(t, testbed.KubeOptions{Users: []testbed.KubeUser{{Name: "reader"}}})
	install(t, server, "gatewayclasses.gateway.networking.k8s.io", "gateways.gateway.networking.k8s.io",
		"httproutes.gateway.networking.k8s.io", "virtualservices.networking.istio.io",
		"listenersets.gateway.networking.k8s.io", "udproutes.gateway.networking.k8s.io", "serviceexports.multicluster.x-k8s.io",
		"backendtlspolicies.gateway.networking.k8s.io")
	server.Apply(gatewayObjects)
	t.Run("G30GatewayAPI", func(t *testing.T) { gatewayStatus(t, server) })
	t.Run("G31IstioKinds", func(t *testing.T) { istioStatus(t, server) })
	t.Run("G32OtherWriters", func(t *testing.T) { otherWriters(t, server) })
	t.Run("G33TwoHubs", func(t *testing.T) { twoHubs(t, server) })
	t.Run("G34Forbidden", func(t *testing.T) { forbidden(t, server) })
	t.Run("G35Ingress", func(t *testing.T) { ingressStatus(t, server) })
	t.Run("G35IngressClassChanges", func(t *testing.T) { ingressClassChanges(t, server) })
	t.Run("G62FurtherKinds", func(t *testing.T) { furtherKinds(t, server) })
	t.Run("G63Contested", func(t *testing.T) { contestedStatus(t, server) })
	t.Run("G64RefusedObject", func(t *testing.T) { refusedObject(t, server) })
	t.Run("G66KilledLeader", func(t *testing.T) { killedLeader(t, server) })
	t.Run("G83SecretsOfAStatus", func(t *testing.T) { secretsOfStatus(t, server) })
	t.Run("G36StatusIsRemoved", func(t *testing.T) { removed(t, server) })
	t.Run("G96RefusedByTheHub", func(t *testing.T) { refusedByTheHub(t, server) })
	t.Run("G97UnknownFields", func(t *testing.T) { unknownFields(t, server) })
	t.Run("G98NotSupported", func(t *testing.T) { notSupported(t, server) })
}

// gatewayStatus (G30): conditions appear and change; nothing is written for what did not change.
func gatewayStatus(t *testing.T, server *testbed.Kube) {
	server.Apply(route("nowhere"))
	r := newRig(t, server.Admin, true)
	r.read(`{"sources":[{"cluster":"c1","namespaces":["*"]}]}`)
	r.read(written)
	says(t, server, classPath, `"reason":"Accepted"`, `"status":"True"`)
	says(t, server, gatewayPath, `"reason":"NoResources"`, `"attachedRoutes":1`, `"kind":"GRPCRoute"`,
		`"type":"Conflicted"`, `"observedGeneration":1`)
	says(t, server, routePath, `"controllerName":"isthmus.dev/gateway-controller"`, `"reason":"BackendNotFound"`, `"type":"ResolvedRefs"`)
	r.service("shop", "web", nil)
	r.service("shop", "edge", map[string]string{"gateway.networking.k8s.io/gateway-name": "edge"}, "192.0.2.7")
	r.proxies.set(func() { r.proxies.delivery.Accepted = 1 })
	server.Apply(route("web"))
	says(t, server, routePath, `"reason":"ResolvedRefs"`, `"observedGeneration":2`)
	says(t, server, gatewayPath, `"value":"192.0.2.7"`, `"reason":"Programmed"`)
	at, _ := object(t, server, gatewayPath)
	wrote := r.wrote()
	r.proxies.set(func() { r.proxies.delivery.Waiting = 1 }) // on the way: nothing to say
	server.Apply(route("nowhere"))
	says(t, server, routePath, `"reason":"BackendNotFound"`, `"observedGeneration":3`)
	if now, status := object(t, server, gatewayPath); now != at {
		t.Errorf("the Gateway was written without a change: %s", status)
	}
	if now := r.wrote(); now != wrote+1 {
		t.Errorf("%d statuses were written for one change", now-wrote)
	}
}

// istioStatus (G31): findings and what proxies have.
func istioStatus(t *testing.T, server *testbed.Kube) {
	server.Apply(virtualService("web"))
	r := newRig(t, server.Admin, true)
	r.proxies.set(func() {
		r.proxies.findings["web"] = []wanted.Finding{{Code: "HOST_UNKNOWN", Field: "spec.http[0]", Message: "there is no such host"}}
		r.proxies.delivery = wanted.Delivery{Refused: 1}
	})
	r.read(written)
	says(t, server, policyPath, `"code":"HOST_UNKNOWN"`, `"level":"WARNING"`, "spec.http[0]: there is no such host",
		`"reason":"Rejected"`, `"type":"Reconciled"`)
	r.proxies.set(func() {
		clear(r.proxies.findings)
		r.proxies.delivery = wanted.Delivery{Accepted: 1}
	})
	if status := says(t, server, policyPath, `"reason":"Reconciled"`, `"reason":"NoFindings"`); strings.Contains(status, "HOST_UNKNOWN") {
		t.Errorf("the status is %s", status)
	}
}

// otherWriters (G32): entries of other controllers stay, and what they change meanwhile is not trouble.
func otherWriters(t *testing.T, server *testbed.Kube) {
	r := newRig(t, server.Admin, true)
	r.service("shop", "web", nil)
	r.read(written)
	says(t, server, routePath, `"reason":"BackendNotFound"`)
	server.ApplyStatus(`{"apiVersion":"networking.istio.io/v1","kind":"VirtualService","metadata":{"name":"web","namespace":"shop"},
		"status":{"conditions":[{"type":"example.com/Other","status":"True"}]}}`)
	says(t, server, policyPath, "example.com/Other", `"type":"Reconciled"`)
	server.Apply(virtualService("api"))
	says(t, server, policyPath, "example.com/Other", `"type":"Reconciled"`, `"observedGeneration":2`)
	if problem := r.trouble("STATUS_REFUSED"); problem != "" {
		t.Error(problem)
	}
}

// twoHubs (G33): the one that is not the leader writes nothing, until it is.
func twoHubs(t *testing.T, server *testbed.Kube) {
	first, second := newRig(t, server.Admin, true), newRig(t, server.Admin, false)
	first.read(written)
	second.read(written)
	server.Apply(virtualService("v3"))
	says(t, server, policyPath, `"observedGeneration":3`)
	if wrote, failed := second.counts.now(); wrote+failed != 0 {
		t.Errorf("the second hub wrote %d statuses and failed %d times", wrote, failed)
	}
	first.leader.set(false)
	before, _ := first.counts.now()
	server.Apply(virtualService("v4"))
	second.leader.set(true)
	says(t, server, policyPath, `"observedGeneration":4`)
	if wrote, _ := first.counts.now(); wrote > before+1 { // one may have been under way
		t.Error("a hub that is not the leader any more wrote")
	}
}

// forbidden (G34): without the right, a problem names it, and nothing is tried in a loop.
func forbidden(t *testing.T, server *testbed.Kube) {
	server.GrantRead("reader")
	server.Apply(virtualService("v5"))
	r := newRig(t, server.User("reader"), true)
	r.read(written)
	testbed.WaitFor(t, 5*time.Minute, "the problem", func() error {
		if p := r.trouble("STATUS_FORBIDDEN"); !strings.Contains(p, "verb patch on") || !strings.Contains(p, "/status") {
			return fmt.Errorf("it is %q", p)
		}
		return nil
	})
	server.Apply(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"writer"},
		"rules":[{"apiGroups":["networking.istio.io","gateway.networking.k8s.io"],"resources":["*/status"],"verbs":["patch"]}]}`,
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"writer"},
		"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"writer"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"reader"}]}`)
	says(t, server, policyPath, `"observedGeneration":5`)
	testbed.WaitFor(t, 5*time.Minute, "no problem", func() error {
		if p := r.trouble("STATUS_FORBIDDEN"); p != "" {
			return fmt.Errorf("%s", p)
		}
		return nil
	})
}

// ingressStatus (G35): an Ingress has the addresses of the Service of gateways.
func ingressStatus(t *testing.T, server *testbed.Kube) {
	server.Apply(`{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","metadata":{"name":"web","namespace":"shop"},
		"spec":{"defaultBackend":{"service":{"name":"web","port":{"number":80}}}}}`)
	r := newRig(t, server.Admin, true)
	r.service("istio-system", "istio-ingressgateway", nil, "192.0.2.8")
	r.read(`{"ingressControllerMode":"DEFAULT","ingressStatus":true}`)
	says(t, server, ingressPath, `"ip":"192.0.2.8"`)
	r.read(`{"ingressControllerMode":"STRICT","ingressStatus":true}`)
	lacks(t, server, ingressPath, "192.0.2.8")
}

// removed (G36): what the hub wrote goes with its right to write, and what others wrote stays.
func removed(t *testing.T, server *testbed.Kube) {
	r := newRig(t, server.Admin, true)
	r.read(written)
	server.Apply(virtualService("v6"))
	says(t, server, policyPath, `"observedGeneration":6`)
	r.read(`{"sources":[{"cluster":"c1","namespaces":["*"]}]}`)
	testbed.WaitFor(t, 5*time.Minute, "the status to be removed", func() error {
		_, of := object(t, server, policyPath)
		_, ofRoute := object(t, server, routePath)
		if strings.Contains(of, "Reconciled") || strings.Contains(ofRoute, "isthmus.dev") {
			return fmt.Errorf("there are %s and %s", of, ofRoute)
		}
		return nil
	})
	says(t, server, policyPath, "example.com/Other")
	says(t, server, classPath, `"Unknown"`, "Waiting for controller")
}

// TestG34ManifestGrantsWhatIsWritten: the shipped role has the kinds that are written, and no
// more.
func TestG34ManifestGrantsWhatIsWritten(t *testing.T) {
	file, err := os.ReadFile("../../../deploy/kubernetes/status.yaml")
	if err != nil {
		t.Fatal(err)
	}
	document, _, _ := strings.Cut(string(file), "\n---\n")
	var role struct {
		Rules []struct{ APIGroups, Resources, Verbs []string }
	}
	if err := yaml.Unmarshal([]byte(document), &role); err != nil {
		t.Fatal(err)
	}
	var granted []string
	for _, rule := range role.Rules {
		if !slices.Equal(rule.Verbs, []string{"patch"}) {
			t.Errorf("the verbs are %v", rule.Verbs)
		}
		for _, resource := range rule.Resources {
			granted = append(granted, resource+"."+rule.APIGroups[0])
		}
	}
	set, err := loaded()
	if err != nil {
		t.Fatal(err)
	}
	written := []string{"ingresses/status.networking.k8s.io"}
	for _, row := range kind.All() {
		if known, is := set.Kind(row.Kind); is && wanted.Writes(row.Kind) {
			written = append(written, known.Plural+"/status."+known.Group)
		}
	}
	slices.Sort(granted)
	slices.Sort(written)
	if !slices.Equal(granted, written) {
		t.Errorf("the role grants %v, the hub writes %v", granted, written)
	}
}
