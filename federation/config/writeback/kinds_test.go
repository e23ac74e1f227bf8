package writeback_test

import (
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

const furtherObjects = `apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata:
  name: wide
  namespace: shop
spec:
  gatewayClassName: isthmus
  allowedListeners: {namespaces: {from: Same}}
  listeners: [{name: http, port: 8081, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata:
  name: more
  namespace: shop
spec:
  parentRef: {name: wide}
  listeners:
  - {name: next, port: 8082, protocol: HTTP}
  - {name: secure, port: 8443, protocol: HTTPS, tls: {certificateRefs: [{name: cert}]}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata:
  name: refused
  namespace: shop
spec:
  parentRef: {name: edge}
  listeners: [{name: next, port: 8082, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: UDPRoute
metadata:
  name: dns
  namespace: shop
spec:
  parentRefs: [{name: wide}]
  rules: [{backendRefs: [{name: dns, port: 53}]}]
---
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata:
  name: api
  namespace: shop
`

// furtherKinds (G62): their conditions appear, and change with what they depend on.
func furtherKinds(t *testing.T, server *testbed.Kube) {
	server.Apply(furtherObjects)
	r := newRig(t, server.Admin, true)
	r.read(written)
	const (
		sets    = "/apis/gateway.networking.k8s.io/v1/namespaces/shop/listenersets/"
		exports = "/apis/multicluster.x-k8s.io/v1beta1/namespaces/shop/serviceexports/"
	)
	says(t, server, sets+"more", `"reason":"NoResources"`, `"name":"next"`, `"attachedRoutes":0`,
		`"type":"Conflicted"`, `"observedGeneration":1`)
	says(t, server, sets+"refused", `"reason":"NotAllowed"`)
	says(t, server, strings.Replace(gatewayPath, "edge", "wide", 1), `"attachedListenerSets":1`)
	says(t, server, "/apis/gateway.networking.k8s.io/v1/namespaces/shop/udproutes/dns", `"reason":"NotAllowedByListeners"`,
		`"controllerName":"isthmus.dev/gateway-controller"`, `"name":"wide"`)
	says(t, server, exports+"api", `"reason":"NoService"`, `"type":"Valid"`, `"type":"Conflict"`)
	r.service("shop", "api", nil)
	says(t, server, exports+"api", `"message":"the Service can be exported"`, `"reason":"NoConflicts"`, `"reason":"Exported"`)
	r.proxies.set(func() { r.proxies.delivery.Accepted = 1 })
	says(t, server, sets+"more", `"reason":"Programmed"`)
	r.proxies.set(func() { r.proxies.missing = map[string]string{"c1/shop/cert": "no source has it"} })
	says(t, server, sets+"more", `"reason":"InvalidCertificateRef"`, "the Secret shop/cert: no source has it",
		`"reason":"ListenersNotValid"`, `"reason":"Programmed"`)
}
