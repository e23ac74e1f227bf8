package writeback_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
)

// loosen has the server accept every spec of the kinds, as one with newer definitions accepts more than the hub.
func loosen(t *testing.T, server *testbed.Kube, kinds ...string) {
	t.Helper()
	for _, file := range []string{"istio", "gateway-api", "mcs-api"} {
		for _, text := range testbed.Definitions(t, "../schema/crds/"+file+".json.gz", kinds...) {
			var definition struct {
				APIVersion string         `json:"apiVersion"`
				Kind       string         `json:"kind"`
				Metadata   map[string]any `json:"metadata"`
				Spec       map[string]any `json:"spec"`
			}
			if err := json.Unmarshal([]byte(text), &definition); err != nil {
				t.Fatal(err)
			}
			for _, version := range definition.Spec["versions"].([]any) {
				version.(map[string]any)["schema"] = map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "x-kubernetes-preserve-unknown-fields": true,
				}}
			}
			loose, err := json.Marshal(definition)
			if err != nil {
				t.Fatal(err)
			}
			server.Apply(string(loose))
		}
	}
}

// change applies an object until the server has what it says: new definitions are in force a moment later.
func change(t *testing.T, server *testbed.Kube, path, manifest, kept string) {
	t.Helper()
	testbed.WaitFor(t, 5*time.Minute, "the server to have "+kept, func() error {
		answer := server.Do(http.MethodPatch, path+"?fieldManager=testbed&force=true", []byte(manifest))
		if answer.Err != nil || answer.Status >= http.StatusBadRequest || !strings.Contains(string(answer.Body), kept) {
			return errors.Join(answer.Err, fmt.Errorf("the answer is %d %s", answer.Status, answer.Body))
		}
		return nil
	})
}

// has waits until objects of the cluster are configuration.
func (r *rig) has(keys ...federation.ObjectKey) {
	r.t.Helper()
	for _, key := range keys {
		key.Cluster = "c1"
		testbed.WaitFor(r.t, 5*time.Minute, "the "+key.Title(), func() error {
			if _, exists := r.views.Latest().State.Object(key); !exists {
				return errors.New("it is not there")
			}
			return nil
		})
	}
}

func manifest(apiVersion, kind, name, spec string) string {
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q,"namespace":"shop"},"spec":%s}`, apiVersion, kind, name, spec)
}

const gatewayAPI = "gateway.networking.k8s.io/v1"

// refusedByTheHub (G96): an object that its API server accepts and the hub does not is not accepted in its newest
// generation, whether a valid form of it is in force or not. What the status says about that form keeps its generation.
func refusedByTheHub(t *testing.T, server *testbed.Kube) {
	const (
		shop     = "/apis/gateway.networking.k8s.io/v1/namespaces/shop/"
		never    = shop + "httproutes/never"
		elsewise = shop + "httproutes/elsewhere"
		neverOf  = shop + "gateways/never"
		set      = shop + "listenersets/more"
		policy   = shop + "backendtlspolicies/never"
		exports  = "multicluster.x-k8s.io/v1beta1"
		export   = "/apis/" + exports + "/namespaces/shop/serviceexports/never"
	)
	loosen(t, server, "httproutes.gateway.networking.k8s.io", "gateways.gateway.networking.k8s.io",
		"listenersets.gateway.networking.k8s.io", "backendtlspolicies.gateway.networking.k8s.io", "serviceexports.multicluster.x-k8s.io")
	for kind, resource := range map[string]string{
		"HTTPRoute": "httproutes", "Gateway": "gateways", "ListenerSet": "listenersets", "BackendTLSPolicy": "backendtlspolicies",
	} {
		change(t, server, shop+resource+"/probe", manifest(gatewayAPI, kind, "probe", `{"novelty":1}`), "novelty")
		server.Delete(manifest(gatewayAPI, kind, "probe", "{}"))
	}
	r := newRig(t, server.Admin, true)
	r.service("shop", "web", nil)
	r.proxies.set(func() { r.proxies.delivery.Accepted = 1 })
	r.read(written)
	server.Apply(route("web"), furtherObjects)
	r.has(federation.GatewayAPI.HTTPRoute.Key("shop", "web"), federation.GatewayAPI.Gateway.Key("shop", "edge"),
		federation.GatewayAPI.ListenerSet.Key("shop", "more"))
	says(t, server, gatewayPath, `"reason":"Programmed"`)
	says(t, server, set, `"type":"Accepted"`)
	change(t, server, routePath, manifest(gatewayAPI, "HTTPRoute", "web",
		`{"parentRefs":[{"name":"edge"}],"rules":[{"matches":[{"cookies":[{"name":"a"}]}],"backendRefs":[{"name":"web","port":80}]}]}`), "cookies")
	status := says(t, server, routePath, `"reason":"UnsupportedValue"`, "spec.rules[0].matches[0].cookies: unknown field",
		"the last valid form of the object stays in force")
	if strings.Contains(status, `"reason":"Accepted"`) {
		t.Errorf("the status of the route is %s", status)
	}
	change(t, server, never, manifest(gatewayAPI, "HTTPRoute", "never", `{"parentRefs":[{"name":"edge"}],"rules":"all"}`), "all")
	says(t, server, never, `"reason":"UnsupportedValue"`, `"controllerName":"isthmus.dev/gateway-controller"`, "the object has no effect",
		`"observedGeneration":1`)

	change(t, server, policy, manifest(gatewayAPI, "BackendTLSPolicy", "never", `{"targetRefs":[{"group":"","kind":"Service","name":"web"}],
		"validation":{"hostname":1,"caCertificateRefs":[{"group":"","kind":"Cabinet","name":"roots"}]}}`), "Cabinet")
	status = says(t, server, policy, `"reason":"Invalid"`, "spec.validation.hostname", "the object has no effect", `"reason":"InvalidKind"`,
		`"name":"edge"`, `"observedGeneration":1`)
	if strings.Contains(status, `"status":"True"`) {
		t.Errorf("the status of the policy is %s", status)
	}
	server.Delete(manifest(gatewayAPI, "BackendTLSPolicy", "never", "{}"))

	change(t, server, export, manifest(exports, "ServiceExport", "never", `{"exportedLabels":"all"}`), "all")
	status = says(t, server, export, `"reason":"Invalid"`, `"reason":"Failed"`, "spec.exportedLabels", "the object has no effect")
	if strings.Contains(status, `"status":"True"`) {
		t.Errorf("the status of the export is %s", status)
	}
	server.Delete(manifest(exports, "ServiceExport", "never", "{}"))

	change(t, server, gatewayPath, manifest(gatewayAPI, "Gateway", "edge",
		`{"gatewayClassName":"isthmus","listeners":[{"name":"http","port":"many","protocol":"HTTP"}]}`), "many")
	says(t, server, gatewayPath, `"reason":"Invalid"`, "spec.listeners[0].port", "stays in force", `"attachedRoutes":1`,
		`"observedGeneration":2`, `"observedGeneration":1`)
	change(t, server, neverOf, manifest(gatewayAPI, "Gateway", "never", `{"gatewayClassName":"isthmus","listeners":"all"}`), "all")
	says(t, server, neverOf, `"reason":"Invalid"`, `"type":"Programmed"`, "the object has no effect")
	change(t, server, set, manifest(gatewayAPI, "ListenerSet", "more", `{"parentRef":{"name":"wide"},"listeners":"all"}`), "all")
	says(t, server, set, `"reason":"Invalid"`, "stays in force", `"name":"next"`)

	server.Apply(strings.ReplaceAll(gatewayObjects, "name: edge", "name: other"))
	change(t, server, elsewise, manifest(gatewayAPI, "HTTPRoute", "elsewhere", `{"parentRefs":[{"name":"foreign"}],"rules":"all"}`), "all")
	server.Apply(gatewayObjects, route("web"))
	says(t, server, gatewayPath, `"reason":"Programmed"`, `"reason":"Accepted"`)
	says(t, server, routePath, `"reason":"Accepted"`)
	if _, status := object(t, server, elsewise); strings.Contains(status, "isthmus.dev") {
		t.Errorf("the status of a route for a Gateway that does not exist is %s", status)
	}
	server.Delete(manifest(gatewayAPI, "Gateway", "other", "{}"))
}

// unknownFields (G97): of an object with a field that the hub does not know, the rest is in force, and the status says
// that the field is not.
func unknownFields(t *testing.T, server *testbed.Kube) {
	loosen(t, server, "virtualservices.networking.istio.io")
	change(t, server, policyPath, strings.Replace(virtualService("probe"), `"hosts"`, `"novelty":1,"hosts"`, 1), "novelty")
	r := newRig(t, server.Admin, true)
	r.service("shop", "web", nil)
	r.read(written)
	change(t, server, routePath, manifest(gatewayAPI, "HTTPRoute", "web",
		`{"parentRefs":[{"name":"edge"}],"rules":[{"novelty":{"attempts":3},"backendRefs":[{"name":"web","port":80}]}]}`), "novelty")
	says(t, server, routePath, `"reason":"Accepted"`, "spec.rules[0].novelty: unknown field")
	r.awaitTrouble("NOT_HONOURED", "CRD: HTTPRoute shop/web of cluster c1: unknown field", func() {})
	change(t, server, policyPath, manifest("networking.istio.io/v1", "VirtualService", "web",
		`{"hosts":["web"],"novelty":1,"http":[{"route":[{"destination":{"host":"web"}}]}]}`), "novelty")
	says(t, server, policyPath, `"code":"NOT_HONOURED"`, "spec.novelty: unknown field", `"level":"WARNING"`, `"type":"Reconciled"`)
	change(t, server, routePath, manifest(gatewayAPI, "HTTPRoute", "web",
		`{"parentRefs":[{"name":"edge"}],"rules":[{"backendRefs":[{"name":"web","port":80}]}]}`), "backendRefs")
	r.awaitTrouble("NOT_HONOURED", "CRD: VirtualService", func() {})
	if status := says(t, server, routePath, `"reason":"Accepted"`); strings.Contains(status, "novelty") {
		testbed.WaitFor(t, 5*time.Minute, "the message to end", func() error {
			if _, status := object(t, server, routePath); strings.Contains(status, "novelty") {
				return fmt.Errorf("it is %s", status)
			}
			return nil
		})
	}
}

// notSupported (G98): what an object asks for and the hub does not have is in the condition Accepted.
func notSupported(t *testing.T, server *testbed.Kube) {
	r := newRig(t, server.Admin, true)
	r.service("shop", "web", nil)
	r.read(written)
	change(t, server, routePath, manifest(gatewayAPI, "HTTPRoute", "web", `{"parentRefs":[{"name":"edge"}],"rules":[
		{"filters":[{"type":"ExtensionRef","extensionRef":{"group":"example.com","kind":"Filter","name":"f"}}]}]}`), "ExtensionRef")
	says(t, server, routePath, `"reason":"UnsupportedValue"`, "spec.rules[0].filters[0]: the filter ExtensionRef is not supported")
	change(t, server, gatewayPath, manifest(gatewayAPI, "Gateway", "edge", `{"gatewayClassName":"isthmus",
		"listeners":[{"name":"http","port":8080,"protocol":"HTTP"}],"addresses":[{"value":"192.0.2.1"}]}`), "192.0.2.1")
	says(t, server, gatewayPath, `"reason":"Accepted"`, "spec.addresses[0]: the hub assigns no addresses")
	change(t, server, gatewayPath, manifest(gatewayAPI, "Gateway", "edge", `{"gatewayClassName":"isthmus",
		"listeners":[{"name":"http","port":8080,"protocol":"HTTP"}],
		"infrastructure":{"parametersRef":{"group":"","kind":"ConfigMap","name":"p"}}}`), "parametersRef")
	says(t, server, gatewayPath, `"reason":"InvalidParameters"`, "spec.infrastructure.parametersRef")
	says(t, server, classPath, `"reason":"Accepted"`, "the hub serves Gateways of this class")
	server.Apply(`{"apiVersion":"gateway.networking.k8s.io/v1","kind":"GatewayClass","metadata":{"name":"isthmus"},
		"spec":{"controllerName":"isthmus.dev/gateway-controller","parametersRef":{"group":"","kind":"ConfigMap","name":"p","namespace":"shop"}}}`)
	says(t, server, classPath, `"reason":"InvalidParameters"`, `"status":"False"`)
}
