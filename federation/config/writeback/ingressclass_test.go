package writeback_test

import (
	"fmt"
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

const (
	classedPath = "/apis/networking.k8s.io/v1/namespaces/shop/ingresses/classed"
	steadyPath  = "/apis/networking.k8s.io/v1/namespaces/shop/ingresses/steady"
	ownClass    = "istio.io/ingress-controller"
	otherClass  = "example.com/ingress-controller"
)

func ingressClass(name, controller string) string {
	return fmt.Sprintf(`{"apiVersion":"networking.k8s.io/v1","kind":"IngressClass","metadata":{"name":%q},"spec":{"controller":%q}}`,
		name, controller)
}

func classedIngress(class string) string {
	return fmt.Sprintf(`{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","metadata":{"name":"classed","namespace":"shop"},
		"spec":{"ingressClassName":%q,"defaultBackend":{"service":{"name":"web","port":{"number":80}}}}}`, class)
}

// ingressClassChanges (G35): the status of an Ingress is the hub's while its class has the hub's controller. It is removed
// when the class is deleted and when the Ingress names another one. What another controller writes then stays.
func ingressClassChanges(t *testing.T, server *testbed.Kube) {
	server.Apply(ingressClass("shared", ownClass), ingressClass("foreign", otherClass), classedIngress("shared"),
		`{"apiVersion":"networking.k8s.io/v1","kind":"Ingress",
		"metadata":{"name":"steady","namespace":"shop","annotations":{"kubernetes.io/ingress.class":"istio"}},
		"spec":{"defaultBackend":{"service":{"name":"web","port":{"number":80}}}}}`)
	r := newRig(t, server.Admin, true)
	r.service("istio-system", "istio-ingressgateway", nil, "192.0.2.8")
	r.read(`{"ingressControllerMode":"STRICT","ingressStatus":true}`)
	says(t, server, classedPath, `"ip":"192.0.2.8"`)

	server.Apply(classedIngress("foreign"))
	lacks(t, server, classedPath, "192.0.2.8")
	server.Apply(classedIngress("shared"))
	says(t, server, classedPath, `"ip":"192.0.2.8"`)

	server.Delete(ingressClass("shared", ownClass)) // the controller of a class cannot be changed otherwise
	lacks(t, server, classedPath, "192.0.2.8")
	server.Apply(ingressClass("shared", otherClass))
	server.ApplyStatus(`{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","metadata":{"name":"classed","namespace":"shop"},
		"status":{"loadBalancer":{"ingress":[{"ip":"203.0.113.5"}]}}}`)
	r.service("istio-system", "istio-ingressgateway", nil, "192.0.2.9")
	says(t, server, steadyPath, `"ip":"192.0.2.9"`)
	r.wrote() // the hub has come to its next round
	if _, status := object(t, server, classedPath); !strings.Contains(status, "203.0.113.5") || strings.Contains(status, "192.0.2") {
		t.Errorf("the status of an Ingress of another controller is %s", status)
	}

	server.Delete(ingressClass("shared", otherClass))
	server.Apply(ingressClass("shared", ownClass))
	says(t, server, classedPath, `"ip":"192.0.2.9"`)
	lacks(t, server, classedPath, "203.0.113.5")
}
