package gatewayapi

import "testing"

// exported are ServiceExports of the service web in two namespaces, of which the second
// permits routes of shop.
const exported = `---
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata: {name: web, namespace: shop}
---
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata: {name: web, namespace: other}
---
apiVersion: gateway.networking.k8s.io/v1
kind: ReferenceGrant
metadata: {name: imports, namespace: other}
spec:
  from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: shop}]
  to: [{group: multicluster.x-k8s.io, kind: ServiceImport}]
`

// TestU30ExportedServicesAreBackends: a ServiceImport means the service of all clusters that
// export it, whether the hub wrote such an object or not. Of another namespace it needs a
// grant for ServiceImports, and one that nobody exports does not exist.
func TestU30ExportedServicesAreBackends(t *testing.T) {
	for name, test := range map[string]translation{
		"its own namespace": {
			plain + exported + route("r", rules("  - backendRefs: [{group: multicluster.x-k8s.io, kind: ServiceImport, name: web, port: 80}]\n")),
			[]string{server, all, "  {match:[{uri:{prefix:/}}],route:[{to:{host:web.shop.svc.clusterset.local,port:{number:80}},weight:1}]}"},
		},
		"with a grant for another one": {
			plain + exported + route("r",
				rules("  - backendRefs: [{group: multicluster.x-k8s.io, kind: ServiceImport, name: web, namespace: other, port: 80}]\n")),
			[]string{server, all, "  {match:[{uri:{prefix:/}}],route:[{to:{host:web.other.svc.clusterset.local,port:{number:80}},weight:1}]}"},
		},
		"the grant is not for Services": {
			plain + exported + route("r", rules("  - backendRefs: [{name: web, namespace: other, port: 80}]\n")),
			[]string{
				server, all, "  {500,match:[{uri:{prefix:/}}]}",
				"REF_NOT_PERMITTED HTTPRoute.gateway.networking.k8s.io shop/r spec.rules[0].backendRefs[0]",
			},
		},
		"not exported": {
			plain + exported + route("r", rules("  - backendRefs: [{group: multicluster.x-k8s.io, kind: ServiceImport, name: api, port: 80}]\n")),
			[]string{
				server, all, "  {500,match:[{uri:{prefix:/}}]}",
				"BACKEND_NOT_FOUND HTTPRoute.gateway.networking.k8s.io shop/r spec.rules[0].backendRefs[0]",
			},
		},
		"another kind of the group": {
			plain + exported + route("r", rules("  - backendRefs: [{group: multicluster.x-k8s.io, kind: ServiceExport, name: web, port: 80}]\n")),
			[]string{
				server, all, "  {500,match:[{uri:{prefix:/}}]}",
				"INVALID_KIND HTTPRoute.gateway.networking.k8s.io shop/r spec.rules[0].backendRefs[0]",
			},
		},
	} {
		t.Run(name, test.run)
	}
}
