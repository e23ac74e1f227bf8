package kubernetes

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/registries/registrytest"
)

// suiteSlice is a slice of the suite's namespace with the given rest.
func suiteSlice(name, service, rest string) string {
	return fmt.Sprintf("apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: %s, namespace: %s, labels: {kubernetes.io/service-name: %s}}\n%s\n", name, testNamespace, service, rest)
}

// TestRealObjects asks a real API server for services of every type and for
// what it accepts of the strangest slices (B-O1 to B-O9).
func TestRealObjects(t *testing.T) {
	t.Parallel()
	r := newRig(t, testbed.KubeOptions{ServiceCIDR: "10.96.0.0/16,fd00:96::/112"})
	r.kube.Apply(
		"apiVersion: v1\nkind: Node\nmetadata: {name: n1, labels: {topology.kubernetes.io/region: eu, topology.kubernetes.io/zone: eu-1, topology.istio.io/subzone: rack}}\n",
		serviceManifest("plain", "selector: {app: plain}, clusterIP: 10.96.7.1, ports: [{name: http, port: 80, targetPort: web}]"),
		serviceManifest("dual", "ipFamilyPolicy: RequireDualStack, ports: [{name: grpc, port: 80}]"),
		serviceManifest("headless", "clusterIP: None, publishNotReadyAddresses: true, ports: [{name: tcp, port: 5432}]"),
		serviceManifest("node", "type: NodePort, ports: [{name: a, port: 80, appProtocol: kubernetes.io/h2c}]"),
		serviceManifest("balanced",
			"type: LoadBalancer, trafficDistribution: PreferClose, externalIPs: [10.96.7.1], ports: [{name: d, port: 53, protocol: UDP}, {name: dt, port: 53}, {name: s, port: 99, protocol: SCTP}]"),
		serviceManifest("outside", "type: ExternalName, externalName: api.example.com, ports: [{name: https, port: 443}]"),
		serviceManifest("address", "type: ExternalName, externalName: 169.254.169.254"),
		serviceManifest("strange", "ports: [{name: http, port: 80}]"),
		podManifest("plain-1", "10.44.0.1"),
		suiteSlice("plain-1", "plain",
			"addressType: IPv4\nports: [{name: http, port: 8080}]\nendpoints: [{addresses: [10.44.0.1], nodeName: n1, targetRef: {kind: Pod, name: plain-1, namespace: suite}}]"),
		suiteSlice("headless-1", "headless",
			"addressType: IPv4\nports: [{name: tcp, port: 5432}]\nendpoints: [{addresses: [10.44.0.2], hostname: db-0, conditions: {ready: false}}]"),
		suiteSlice("strange-1", "strange",
			"addressType: IPv4\nports: [{name: http, port: 8080}, {name: zero, port: 0}, {name: big, port: 70000}, {name: nil}]\nendpoints: [{addresses: [10.0.0.01]}, {addresses: [10.44.0.3], zone: \"a/../b c\\n\"}, {addresses: [10.44.0.3], conditions: {ready: false}}, {addresses: [10.96.7.1]}, {addresses: [100.100.100.200]}, {addresses: [10.44.0.4], targetRef: {kind: Pod, name: x, namespace: other}}]"),
		suiteSlice("strange-2", "strange", "addressType: FQDN\nports: []\nendpoints: [{addresses: [metadata.google.internal]}]"),
		suiteSlice("orphan-1", "nobody", "addressType: IPv4\nports: []\nendpoints: [{addresses: [10.44.0.9]}]"),
	)
	r.kube.ApplyStatus(podManifest("plain-1", "10.44.0.1"), serviceManifest("balanced", "ports: []")+
		"status: {loadBalancer: {ingress: [{ip: 127.0.0.1}]}}\n")
	recorder, _ := registrytest.Start(t, r)
	v := recorder.WaitPhase(t, federation.Ready)
	shard := func(name string) *federation.Shard {
		s := v.Services[serviceKey(name)]
		if s == nil {
			t.Fatalf("no service %s", name)
		}
		return s
	}

	plain := shard("plain")
	wantEndpoints(t, plain, []federation.Endpoint{{
		Address: ip("10.44.0.1"), Ports: []federation.EndpointPort{{Name: "http", Number: 8080}}, Network: federation.DefaultNetwork,
		Health:   federation.Healthy,
		Locality: federation.Locality{Region: "eu", Zone: "eu-1", SubZone: "rack"}, Labels: map[string]string{"app": "plain"},
		ServiceAccount: testNamespace + "/runner", Workload: testNamespace + "/plain-1", UID: plain.Endpoints[0].UID,
	}})
	if !slices.Equal(plain.VIPs, []netip.Prefix{netip.MustParsePrefix("10.96.7.1/32")}) || plain.UID == "" || plain.Created.IsZero() {
		t.Errorf("plain: %+v", plain)
	}
	if sel := plain.Selector; sel == nil || sel.Labels["app"] != "plain" || sel.TargetNames["http"] != "web" ||
		!slices.Equal(sel.Providers, []federation.Provider{federation.External}) {
		t.Errorf("selector of plain: %+v", sel)
	}
	if d := shard("dual"); len(d.VIPs) != 2 || d.VIPs[0].Addr().Is4() == d.VIPs[1].Addr().Is4() || d.Ports[0].Protocol != federation.GRPC {
		t.Errorf("dual: %+v", d)
	}
	if h := shard("headless"); h.Resolution != federation.Passthrough || len(h.VIPs) != 0 || h.Endpoints[0].Health != federation.Healthy ||
		h.Endpoints[0].Hostname != "db-0" {
		t.Errorf("headless: %+v", h)
	}
	if n := shard("node"); len(n.VIPs) != 1 || n.Ports[0].Protocol != federation.HTTP2 {
		t.Errorf("node: %+v", n)
	}
	if b := shard("balanced"); len(b.VIPs) != 1 || len(b.Ports) != 2 || len(b.Endpoints) != 0 || b.TrafficDistribution != "PreferClose" {
		t.Errorf("balanced: %+v", b)
	}
	if o := shard("outside"); o.Resolution != federation.DNSLB || shown(o)[0] != "api.example.com [{https 443}] HEALTHY" {
		t.Errorf("outside: %+v", o)
	}
	if a := shard("address"); len(a.Endpoints) != 0 {
		t.Errorf("address: %+v", a)
	}
	if got, want := shown(shard("strange")), []string{
		"10.44.0.3 [{http 8080}] HEALTHY", "10.44.0.3 [{http 8080}] UNHEALTHY", "10.44.0.4 [{http 8080}] HEALTHY",
		"100.100.100.200 [{http 8080}] HEALTHY",
	}; !slices.Equal(got, want) {
		t.Errorf("strange: %q", got)
	}
	wantProblems(t, federation.Edit{Problems: federation.Delta[string, federation.Problem]{Set: v.Problems}}, map[string]string{
		"Service suite/balanced spec.ports[2].protocol":                  "SCTP",
		"Service suite/address spec.externalName":                        "IP address",
		"EndpointSlice suite/strange-1 ports[1].port":                    "0 is not a port",
		"EndpointSlice suite/strange-1 ports[2].port":                    "70000",
		"EndpointSlice suite/strange-1 ports[3].port":                    "no number",
		"EndpointSlice suite/strange-1 endpoints[0].addresses[0]":        `"10.0.0.01"`,
		"EndpointSlice suite/strange-1 endpoints[1].zone":                `"a/../b c\n"`,
		"EndpointSlice suite/strange-1 endpoints[3].addresses[0]":        "suite/plain",
		"EndpointSlice suite/strange-1 endpoints[5].targetRef.namespace": `"other"`,
		"EndpointSlice suite/strange-2 addressType":                      "FQDN",
	})
	if w := v.Workloads[federation.WorkloadKey{Namespace: testNamespace, Name: "plain-1"}]; w == nil || w.Probes[0].Port != 8080 ||
		w.ManagementPorts[0].Number != 8080 || w.Health != federation.Healthy {
		t.Errorf("workload %+v", w)
	}

	r.kube.Apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: kube-system, labels: {topology.istio.io/network: west}}\n")
	recorder.Wait(t, "the network of kube-system", func(v registrytest.View) bool {
		return v.Identity.Network == "west" && v.Services[serviceKey("plain")].Endpoints[0].Network == "west"
	})
	r.kube.Apply(suiteSlice("strange-1", "strange",
		"addressType: IPv4\nports: [{name: http, port: 8080}]\nendpoints: [{addresses: [10.44.0.3]}]"))
	recorder.Wait(t, "the problems to heal", func(v registrytest.View) bool {
		for name := range v.Problems {
			if strings.Contains(name, "strange-1") {
				return false
			}
		}
		return true
	})
}

func podManifest(name, address string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: %s, labels: {app: plain}}
spec:
  nodeName: n1
  serviceAccountName: runner
  containers:
  - name: main
    image: none
    ports: [{name: web, containerPort: 8080}]
    readinessProbe: {httpGet: {port: web, path: /ready}}
status: {phase: Running, conditions: [{type: Ready, status: "True"}], podIP: %s, podIPs: [{ip: %s}]}
`, name, testNamespace, address, address)
}
