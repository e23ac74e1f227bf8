package kubernetes

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/registries/registrytest"
)

// TestR85TrafficDistributionByAnnotation: the field of the Service comes first.
func TestR85TrafficDistributionByAnnotation(t *testing.T) {
	for name, test := range map[string]struct{ annotation, field, want, problem string }{
		"Annotation": {"PreferClose", "", "PreferClose", ""},
		"AnyCase":    {"preferclose", "", "PreferClose", ""},
		"FieldFirst": {"PreferSameNode", "trafficDistribution: PreferClose, ", "PreferClose", ""},
		"Unknown":    {"Nearby", "", "Nearby", `"Nearby" is not known`},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel("")
			fixture(t, m, strings.NewReplacer("namespace: shop}", "namespace: shop, annotations: {networking.istio.io/traffic-distribution: "+
				test.annotation+"}}", "spec: {", "spec: {"+test.field).Replace(plainService))
			e, want := full(m), map[string]string{}
			if got := shardOf(t, e, "web.shop.svc.cluster.local").TrafficDistribution; got != test.want {
				t.Errorf("it is %q, want %q", got, test.want)
			}
			if test.problem != "" {
				want["Service shop/web metadata.annotations[networking.istio.io/traffic-distribution]"] = test.problem
			}
			wantProblems(t, e, want)
		})
	}
}

// TestR85TrafficDistributionOfTheNamespace counts for Services that do not say it
// themselves, and follows the annotation.
func TestR85TrafficDistributionOfTheNamespace(t *testing.T) {
	space := func(name, wish string) *defaults {
		return parseDefaults(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{annotationDistribution: wish},
		}})
	}
	own := strings.NewReplacer("name: web", "name: own", "spec: {", "spec: {trafficDistribution: PreferClose, ").Replace(plainService)
	m := newModel("")
	m.set(space("bank", "PreferClose"))
	fixture(t, m, plainService+"\n---\n"+own)
	want := func(web string) {
		t.Helper()
		e := full(m)
		for host, want := range map[string]string{"web": web, "own": "PreferClose"} {
			if got := shardOf(t, e, host+".shop.svc.cluster.local").TrafficDistribution; got != want {
				t.Errorf("%s has %q, want %q", host, got, want)
			}
		}
		sameAsFromNothing(t, m)
	}
	want("")
	m.set(space("shop", "prefersamezone"))
	want("PreferSameZone")
	m.set(space("shop", "Nearby"))
	wantProblems(t, full(m),
		map[string]string{"Namespace shop metadata.annotations[networking.istio.io/traffic-distribution]": `"Nearby" is not known`})
	m.remove(kindNamespaces, key{Name: "shop"})
	want("")
	wantProblems(t, full(m), map[string]string{})
}

// TestR85RealNamespacesSayTheDistribution asks a real API server.
func TestR85RealNamespacesSayTheDistribution(t *testing.T) {
	t.Parallel()
	r := newRig(t, testbed.KubeOptions{})
	space := func(annotations string) {
		r.kube.Apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: near, annotations: {" + annotations + "}}\n")
	}
	space("")
	r.kube.Apply("apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: near}\nspec: {ports: [{name: http, port: 80}]}\n")
	recorder, _ := registrytest.Start(t, r)
	becomes := func(want string) {
		t.Helper()
		recorder.Wait(t, "the distribution "+want, func(v registrytest.View) bool {
			s := v.Services[federation.ServiceKey{Hostname: "web.near.svc.cluster.local", Namespace: "near"}]
			return s != nil && s.TrafficDistribution == want
		})
	}
	becomes("")
	space("networking.istio.io/traffic-distribution: PreferClose")
	becomes("PreferClose")
	space("networking.istio.io/traffic-distribution: null")
	becomes("")
}

// TestR85Localities: the pod's own label, else the node's labels, of which the
// older names count where the newer ones are missing.
func TestR85Localities(t *testing.T) {
	older := strings.NewReplacer("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/zone",
		"failure-domain.beta.kubernetes.io/zone").Replace(nodeYAML)
	labelled := func(locality string) string {
		return strings.Replace(podYAML, "labels: {", "labels: {istio-locality: "+locality+", ", 1)
	}
	for name, test := range map[string]struct {
		node, pod string
		want      federation.Locality
	}{
		"Node":        {nodeYAML, podYAML, federation.Locality{Region: "eu", Zone: "eu-1", SubZone: "rack-1"}},
		"OlderLabels": {older, podYAML, federation.Locality{Region: "eu", Zone: "eu-1", SubZone: "rack-1"}},
		"NewerFirst": {
			strings.Replace(nodeYAML, "labels: {", "labels: {failure-domain.beta.kubernetes.io/zone: old, ", 1), podYAML,
			federation.Locality{Region: "eu", Zone: "eu-1", SubZone: "rack-1"},
		},
		"PodsOwn":      {nodeYAML, labelled("r9.z9.s9"), federation.Locality{Region: "r9", Zone: "z9", SubZone: "s9"}},
		"RegionAndSub": {nodeYAML, labelled("r9"), federation.Locality{Region: "r9"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel("")
			fixture(t, m, strings.Join([]string{
				plainService, test.node, test.pod,
				sliceOf("s", "addressType: IPv4\nendpoints: [{addresses: [10.1.0.7], zone: eu-9, targetRef: {kind: Pod, name: web-1}}]"),
			}, "---\n"))
			e := full(m)
			endpoint := shardOf(t, e, "web.shop.svc.cluster.local").Endpoints[0]
			workload := e.Workloads.Set[federation.WorkloadKey{Namespace: "shop", Name: "web-1"}]
			if endpoint.Locality != test.want || workload.Locality != test.want {
				t.Errorf("endpoint %v, workload %v, want %v", endpoint.Locality, workload.Locality, test.want)
			}
		})
	}
}

// TestR85UDPOnATCPPort: a UDP port on the number of a TCP port is reported.
func TestR85UDPOnATCPPort(t *testing.T) {
	m := newModel("")
	fixture(t, m, strings.Replace(plainService, "port: 80}",
		"port: 80, appProtocol: udp}, {name: dns, port: 53, protocol: UDP, appProtocol: udp}", 1))
	e := full(m)
	if p := shardOf(t, e, "web.shop.svc.cluster.local").Ports[0]; p.Protocol != federation.HTTP {
		t.Errorf("the port is %+v", p)
	}
	wantProblems(t, e,
		map[string]string{"Service shop/web spec.ports[0].appProtocol": `"udp" is not known for a port of this protocol; the port is treated as HTTP`})
}

// What an account has that may see no namespace but kube-system.
const (
	narrowRole = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"narrow"},"rules":[
{"apiGroups":[""],"resources":["services","pods","nodes"],"verbs":["list","watch"]},
{"apiGroups":["discovery.k8s.io"],"resources":["endpointslices"],"verbs":["list","watch"]},
{"apiGroups":[""],"resources":["namespaces"],"resourceNames":["kube-system"],"verbs":["list","watch"]}]}`
	narrowBinding = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"narrow"},
"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"narrow"},
"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"narrow"}]}`
)

// TestR85NetworkOfIstiosNamespace asks a real API server: kube-system's label comes
// first, and an account that may not see istio-system reads the rest.
func TestR85NetworkOfIstiosNamespace(t *testing.T) {
	t.Parallel()
	r := newRig(t, testbed.KubeOptions{Users: []testbed.KubeUser{{Name: "narrow"}}})
	namespace := func(name, network string) {
		r.kube.Apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: " + name + ", labels: {topology.istio.io/network: " + network + "}}\n")
	}
	recorder, _ := registrytest.Start(t, r)
	recorder.WaitPhase(t, federation.Ready)
	network := func(want federation.NetworkID) {
		t.Helper()
		recorder.Wait(t, "the network "+string(want), func(v registrytest.View) bool { return v.Identity.Network == want })
	}
	namespace(istioSystem, "west")
	network("west")
	namespace("kube-system", "north")
	network("north")
	namespace("kube-system", "''")
	network("west")

	r.kube.Apply(narrowRole, narrowBinding)
	r.client = r.connect(t, r.kube.User("narrow"))
	recorder, _ = registrytest.Start(t, r)
	recorder.WaitPhase(t, federation.Ready)
}
