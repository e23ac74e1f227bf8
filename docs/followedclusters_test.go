package docs

import (
	"encoding/base64"
	"fmt"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/deploy/testbed/toolset"
)

// clusterProfile is what a cluster manager writes about the cluster c2.
const clusterProfile = `apiVersion: multicluster.x-k8s.io/v1alpha1
kind: ClusterProfile
metadata: {name: c2, namespace: isthmus}
status: {accessProviders: [{name: secretreader, cluster: {server: %q, certificate-authority-data: %s}}]}
`

// objectsOfC1 are what the namespace shop of c1 has for the hub.
const objectsOfC1 = `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: of-c1, namespace: shop}
spec: {hosts: [web], http: [{route: [{destination: {host: web}}]}]}
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: istio}
spec: {controller: istio.io/ingress-controller}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: shop}
spec:
  ingressClassName: istio
  rules:
  - host: web.example.com
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}
`

// TestM19ClustersAreUsedAsInTheGuide follows the pages about the Gateway API, exported services and sources of
// configuration with real API servers and kubectl, and a gateway that is an Envoy. A second cluster is attached by
// a folder, by a Secret that istioctl writes, and by a ClusterProfile (U68).
func TestM19ClustersAreUsedAsInTheGuide(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.AddLocal("10.0.0.7")
	m.shim(t, "istioctl", "exec "+installed(t, toolset.Istioctl)+` "$@"`)
	kubeconfig1, c1 := m.clusterOfWeb(t, "c1", "10.0.0.6", "10.0.0.8")
	kubeconfig2, c2 := m.clusterOfWeb(t, "c2", "10.0.0.4", "10.0.0.5")
	m.types("kubectl --context c1 apply -f deploy/kubernetes/reader.yaml")
	m.types(`cat > token.sh <<'END'
token=$(kubectl --context c1 create token isthmus-reader -n isthmus)
mkdir clusters
kubectl config view --raw --minify > clusters/c1.yaml
user=$(kubectl config view --minify -o jsonpath='{.users[0].name}')
export KUBECONFIG=clusters/c1.yaml
kubectl config delete-user $user
kubectl config set-credentials $user --token=$token
END
bash token.sh
kubectl config view --raw --minify --context c2 > clusters/c2.yaml`)
	m.startsHub("--kubeconfig-dir clusters")
	m.types("isthmus describe cluster c1 | grep READY\nisthmus describe cluster c2 | grep READY")
	m.reads(t, "gateway-api.md", "## Serve a Gateway of a cluster", "## Verify clients")
	for _, cluster := range []string{"c1", "c2"} {
		m.types("again \"curl -s -H 'Host: web.example.com' http://10.0.0.7:8090/ | grep web-of-" + cluster + "\"")
	}
	m.routes(t)
	m.reads(t, "multi-cluster-services.md", "## Export a service", "## What proxies get")
	m.types("isthmus get services -A | grep clusterset.local")
	m.namesClusters(t, c1, c2)
	m.readsSources(t)
	m.do(t, false, "KUBECONFIG="+kubeconfig1+":"+kubeconfig2)
}

// routes has the reader add listeners and routes of other kinds, find what is wrong with one, and have the status of all written (U77).
func (m *readersMachine) routes(t *testing.T) {
	t.Helper()
	const page, describe = "gateway-api.md", "isthmus describe httproute.gateway.networking.k8s.io web-share -n shop"
	m.reads(t, page, "## Add listeners of others", "## Route requests between services")
	m.reads(t, page, "## Route requests between services", "## Find out what is wrong")
	m.types("again '" + describe + " | grep BACKEND_NOT_FOUND'")
	m.types(`kubectl --context c1 get service web -n shop -o json | jq '{apiVersion, kind, metadata: {name: "web-v2", namespace: "shop"}, spec: {ports: .spec.ports}}' | kubectl --context c1 apply -f -`)
	m.types("again '" + describe + " > described && ! grep BACKEND_NOT_FOUND described'")
	m.reads(t, page, "## Find out what is wrong", "## Write status into the cluster")
	m.reads(t, page, "## Write status into the cluster", "## What is supported")
	m.types("again 'kubectl --context c1 get httproute more -n shop -o yaml | grep isthmus.dev/gateway-controller'")
}

// namesClusters has the reader attach c2 by objects of c1, and have ServiceImports written to c1.
func (m *readersMachine) namesClusters(t *testing.T, c1, c2 *testbed.Kube) {
	t.Helper()
	const restart = "--config isthmus.yaml"
	m.types(`rm clusters/c2.yaml
mv clusters/c1.yaml c1.kubeconfig
echo "clusters: [{id: c1, provider: Kubernetes, kubernetes: {kubeconfig: $PWD/c1.kubeconfig, serviceImports: true}}]" > imports.yaml`)
	m.writes(t, "secrets.yaml", "clusters.md", "yaml", "remoteSecrets: {clusters: [c1]}")
	m.types("cat imports.yaml secrets.yaml > isthmus.yaml")
	m.reads(t, "multi-cluster-services.md", "## ServiceImports", "3. Set `kubernetes.serviceImports: true` for the cluster, in the config file or in its")
	m.startsHub(restart)
	m.types("again 'kubectl --context c1 get serviceimports web -n shop'")
	m.reads(t, "multi-cluster-services.md", "them:", "")
	m.writesToken(t, c2, "istio-system", "istio-reader-service-account-istio-remote-secret-token", "istio-reader-service-account")
	m.reads(t, "clusters.md", "## Secrets that name clusters", "## ClusterProfiles")
	m.types("isthmus describe cluster c2 | grep READY\nisthmus get services web.shop.svc.cluster.local -o yaml | grep c2")
	m.types("kubectl --context c1 delete secret -n istio-system -l istio/multiCluster=true\nagain '! isthmus describe cluster c2'")

	c1.Apply(testbed.Definitions(t, "../federation/config/schema/crds/istio.json.gz")...)
	m.writes(t, "profiles.yaml", "clusters.md", "yaml", "clusterProfiles: {clusters: [c1]}")
	m.types("cat > profile.yaml <<'END'\n" + testbed.ClusterProfiles + "---\n" + fmt.Sprintf(clusterProfile, c2.URL, base64.StdEncoding.EncodeToString(c2.Admin.CA)) + "END")
	m.types("cat imports.yaml profiles.yaml > isthmus.yaml")
	m.writesToken(t, c2, "isthmus", "isthmus-reader", "isthmus-reader")
	m.startsHub(restart)
	m.types("again 'kubectl --context c1 apply -f profile.yaml'")
	m.reads(t, "clusters.md", "## ClusterProfiles", "## Where credentials are")
	m.types("isthmus describe cluster c2 | grep READY")
}

// readsSources has the reader use objects of c1 as configuration, and have their status written.
func (m *readersMachine) readsSources(t *testing.T) {
	t.Helper()
	const page = "configuration-sources.md"
	m.types("kubectl --context c1 apply -f - <<'END'\n" + objectsOfC1 + "END")
	m.reads(t, page, "## Read configuration from a cluster's custom resources", "## Write status into the cluster")
	m.types("again 'isthmus get virtualservices of-c1 -n shop -o wide | grep crd/c1'")
	m.reads(t, page, "## Write status into the cluster", "## Use Ingress objects")
	m.types("again 'kubectl --context c1 get virtualservice of-c1 -n shop -o yaml | grep PassedAnalysis'")
	m.reads(t, page, "## Use Ingress objects", "## Read configuration from another control plane")
	m.types("again 'isthmus get virtualservices -A -o wide | grep ingress-host.web.example.com'")
}
