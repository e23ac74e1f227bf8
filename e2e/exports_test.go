package e2e

import (
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

const webExport = `apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata: {name: web, namespace: shop}
`

const exportSettings = `apiVersion: isthmus.dev/v1
kind: MeshSettings
metadata: {name: default}
spec:
  sources:
  - {cluster: c1, namespaces: [shop], kinds: [ServiceExport.multicluster.x-k8s.io]}
  - {cluster: c2, namespaces: [shop], kinds: [ServiceExport.multicluster.x-k8s.io], scope: MESH}
`

// exportedOnly is a route of the Service itself (GAMMA): requests with the header go to the
// clusters that export it.
const exportedOnly = `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: shop}
spec:
  parentRefs: [{group: "", kind: Service, name: web, port: 8080}]
  rules:
  - matches: [{headers: [{name: x-only, value: exported}]}]
    backendRefs: [{group: multicluster.x-k8s.io, kind: ServiceImport, name: web, port: 8080}]
  - backendRefs: [{name: web, port: 8080}]
`

// testRoutesOfAService has requests through a real sidecar go where the HTTPRoute with the Service
// as parent says, by their headers.
func testRoutesOfAService(t *testing.T, w *fixture, client *client, exporting string) {
	w.hub.change(t, "apply", map[string]any{"manifests": []string{exportedOnly}})
	marked := *client
	marked.header = []string{"x-only", "exported"}
	marked.awaitAnswerers(t, patience, exporting)
	client.awaitAnswerers(t, patience, "c1", "c2", "dc1")
}

// TestN05ExportedServicesAreReached: by the name of clusterset.local, a real Envoy reaches the
// clusters that export the service, and no others, which the name of cluster.local reaches. Routes
// of the Service lead there, too.
func TestN05ExportedServicesAreReached(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	for _, kube := range []*testbed.Kube{w.c1, w.c2} {
		kube.Apply(definitions(t, "mcs-api")...)
	}
	w.c2.Apply(webExport)
	w.hub.change(t, "apply", map[string]any{"manifests": []string{exportSettings}})
	w.awaitEndpoints(patience, "c1", "c2", "dc1")
	client := w.startClient("exports", "10.77.0.13", "DELTA_GRPC")
	client.awaitAnswerers(t, patience, "c1", "c2", "dc1")
	exported := *client
	exported.host = "web.shop.svc.clusterset.local"
	exported.awaitAnswerers(t, patience, "c2")
	testRoutesOfAService(t, w, client, "c2")
	w.c1.Apply(webExport)
	exported.awaitAnswerers(t, patience, "c1", "c2")
	w.c2.Delete(webExport)
	exported.awaitAnswerers(t, patience, "c1")
	client.awaitAnswerers(t, patience, "c1", "c2", "dc1")
}
