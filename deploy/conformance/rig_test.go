// Package conformance runs the conformance suite of the Gateway API against the hub: a real
// kube-apiserver, the hub's program, an Envoy for each Gateway, and a program for each Deployment:
// the suite's echo server, or a name server in place of CoreDNS. The tests do the work of
// the controllers that a cluster has.
package conformance

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"isthmus.dev/isthmus/deploy/testbed"
)

const (
	class  = "isthmus"
	subnet = "10.83.1"
)

// rig is the cluster, the hub and the network of the pods.
type rig struct {
	t      *testing.T
	access *rest.Config
	client client.Client
	hub    *testbed.Hub
	pods   *testbed.Network
	last   int // byte of the addresses that are used
}

func newRig(t *testing.T) *rig {
	t.Helper()
	log.SetLogger(logr.Discard())
	r := &rig{t: t, pods: testbed.NewNetwork(t, "pods", subnet+".0/24"), last: 10}
	testbed.Own(t).Join(r.pods, subnet+".2")
	kube := testbed.StartKube(t, testbed.KubeOptions{Name: "c1", ServiceCIDR: "10.96.0.0/16"})
	kube.Apply(testbed.Definitions(t, "../../federation/config/schema/crds/gateway-api.json.gz")...)
	for _, file := range []string{"reader", "gateway-api", "backend-authorities", "status"} {
		kube.Apply(read(t, "../kubernetes/"+file+".yaml"))
	}
	for namespace, label := range map[string]string{"infra": "infra", "web-backend": "backend"} {
		name := "gateway-conformance-" + namespace
		kube.Apply(fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s, labels: {gateway-conformance: %s}}\n", name, label))
		kube.Apply(strings.ReplaceAll(read(t, "../kubernetes/secrets.yaml"), "namespace: edge", "namespace: "+name))
	}
	kube.Apply(fmt.Sprintf("apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: %s}\nspec: {controllerName: isthmus.dev/gateway-controller}\n", class))
	r.connect(kube)
	r.startHub(kube)
	return r
}

// connect makes the clients of the test.
func (r *rig) connect(kube *testbed.Kube) {
	access, err := clientcmd.RESTConfigFromKubeConfig(kube.Kubeconfig())
	if err != nil {
		r.t.Fatal(err)
	}
	access.QPS, access.Burst = -1, -1
	r.client, err = client.New(access, client.Options{})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, add := range []error{gateway.Install(r.client.Scheme()), apiextensions.AddToScheme(r.client.Scheme())} {
		if add != nil {
			r.t.Fatal(add)
		}
	}
	r.access = access
}

// startHub runs a hub that reads the cluster with the rights of the manifests alone.
func (r *rig) startHub(kube *testbed.Kube) {
	access := kube.Admin
	access.Cert, access.Key = nil, nil
	access.Token = kube.ServiceAccountToken(testbed.TokenOptions{Namespace: "isthmus", Account: "isthmus-reader"})
	file := r.t.TempDir() + "/c1"
	if err := os.WriteFile(file, access.Kubeconfig(), 0o600); err != nil {
		r.t.Fatal(err)
	}
	r.hub = testbed.StartHub(r.t, testbed.HubOptions{
		Program: program("isthmus"),
		Config:  fmt.Sprintf("clusters:\n- {id: c1, provider: Kubernetes, kubernetes: {kubeconfig: %s, secrets: true}}\n", file),
	})
	settings := strings.ReplaceAll(meshSettings, "KINDS", strings.Join(kinds, ", "))
	const apply = `mutation ($in: ApplyInput!) { apply(input: $in) { revision } }`
	var answer struct{}
	if err := r.hub.Query(apply, map[string]any{"in": map[string]any{"manifests": []string{settings}}}, &answer); err != nil {
		r.t.Fatal(err)
	}
}

const meshSettings = `apiVersion: isthmus.dev/v1
kind: MeshSettings
metadata: {name: default}
spec:
  sources:
  - {cluster: c1, namespaces: ["*"], status: true, kinds: [KINDS]}
`

// kinds are those that the hub reads from the cluster.
var kinds = []string{
	"GatewayClass.gateway.networking.k8s.io", "Gateway.gateway.networking.k8s.io", "ReferenceGrant.gateway.networking.k8s.io",
	"HTTPRoute.gateway.networking.k8s.io", "GRPCRoute.gateway.networking.k8s.io", "TLSRoute.gateway.networking.k8s.io",
	"TCPRoute.gateway.networking.k8s.io",
	"ListenerSet.gateway.networking.k8s.io", "UDPRoute.gateway.networking.k8s.io", "BackendTLSPolicy.gateway.networking.k8s.io",
	"ConfigMap", "Namespace",
}

// next returns an address that nobody has.
func (r *rig) next() string {
	r.last++
	return fmt.Sprintf("%s.%d", subnet, r.last)
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
