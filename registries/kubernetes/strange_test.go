package kubernetes

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation"
)

const plainService = `apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {clusterIPs: [10.96.0.9], ports: [{name: http, port: 80}]}
`

// sliceOf is a slice of shop/web with the given rest.
func sliceOf(name, rest string) string {
	return "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: " + name +
		", namespace: shop, labels: {kubernetes.io/service-name: web}}\n" + rest + "\n"
}

// TestStrangeSlices has what a real API server accepts, and what it does not
// but another server might.
func TestStrangeSlices(t *testing.T) {
	const v4 = "addressType: IPv4\n"
	for _, test := range []struct {
		name, slice string
		endpoints   []string // "ADDRESS PORTS HEALTH"
		problems    map[string]string
	}{
		{
			"BO1_Ports",
			v4 +
				"ports: [{name: a, port: 0}, {name: b, port: 70000}, {name: c}, {port: 8080}, {name: http, port: 8080}, {name: http, port: 8081}, {name: s, port: 9, protocol: SCTP}, {name: u, port: 53, protocol: UDP}, {name: n, port: -5}]\nendpoints: [{addresses: [10.1.0.1]}]",
			[]string{"10.1.0.1 [{http 8080} {u 53}] HEALTHY"},
			map[string]string{
				"ports[0].port": "0 is not a port", "ports[1].port": "70000 is not a port", "ports[2].port": "no number",
				"ports[3].name": "must name", "ports[5].name": "used before", "ports[8].port": "-5",
			},
		},
		{
			"BO1_OnePortWithoutName", v4 + "ports: [{port: 8080}]\nendpoints: [{addresses: [10.1.0.1]}]",
			[]string{"10.1.0.1 [{ 8080}] HEALTHY"},
			nil,
		},
		{"BO1_NoPorts", v4 + "ports: []\nendpoints: [{addresses: [10.1.0.1]}]", []string{"10.1.0.1 [] HEALTHY"}, nil},
		{
			"BO2_Addresses",
			v4 +
				"endpoints: [{addresses: [10.0.0.01]}, {addresses: ['']}, {addresses: ['not an ip']}, {addresses: [10.1.0.2]}, {addresses: []}, {addresses: [10.96.0.9]}, {addresses: ['fd00::1']}]",
			[]string{"10.1.0.2 [] HEALTHY"},
			map[string]string{
				"endpoints[0].addresses[0]": "usual form", "endpoints[1].addresses[0]": "usual form", "endpoints[2].addresses[0]": "usual form",
				"endpoints[4].addresses":    "empty",
				"endpoints[5].addresses[0]": "address of service shop/web", "endpoints[6].addresses[0]": "no IPv4 address",
			},
		},
		{
			"BO2_Zone",
			"addressType: IPv6\nendpoints: [{addresses: ['fe80::1%eth0']}, {addresses: ['::ffff:10.0.0.1']}, {addresses: ['fd00::1', 'fd00::2']}]",
			[]string{"fd00::1 [] HEALTHY"},
			map[string]string{
				"endpoints[0].addresses[0]": "with a zone", "endpoints[1].addresses[0]": "no IPv6 address",
			},
		},
		{"BO4_FQDN", "addressType: FQDN\nendpoints: [{addresses: [metadata.google.internal]}]", nil, map[string]string{"addressType": "FQDN"}},
		{"BO9_Zones", v4 + `endpoints: [{addresses: [10.1.0.1], zone: "a/../b c\n"}, {addresses: [10.1.0.2], zone: "` + strings.Repeat("z", 64) +
			`"}]`, []string{"10.1.0.1 [] HEALTHY", "10.1.0.2 [] HEALTHY"}, map[string]string{
			"endpoints[0].zone": `"a/../b c\n"`, "endpoints[1].zone": "(63 letters",
		}},
		{
			"TargetElsewhere",
			v4 +
				"endpoints: [{addresses: [10.1.0.1], targetRef: {kind: Pod, name: web-1, namespace: other}}, {addresses: [10.1.0.2], targetRef: {kind: Node, name: n1}}]",
			[]string{"10.1.0.1 [] HEALTHY", "10.1.0.2 [] HEALTHY"},
			map[string]string{
				"endpoints[0].targetRef.namespace": `"other"`,
			},
		},
		{
			"Conditions",
			v4 +
				"endpoints: [{addresses: [10.1.0.1], conditions: {}}, {addresses: [10.1.0.2], conditions: {ready: true}}, {addresses: [10.1.0.3], conditions: {ready: false}}, {addresses: [10.1.0.4], conditions: {ready: false, serving: true, terminating: true}}, {addresses: [10.1.0.5], conditions: {ready: false, serving: false, terminating: true}}, {addresses: [10.1.0.6], conditions: {ready: false, serving: true}}]",
			[]string{
				"10.1.0.1 [] HEALTHY", "10.1.0.2 [] HEALTHY", "10.1.0.3 [] UNHEALTHY", "10.1.0.4 [] DRAINING",
				"10.1.0.5 [] UNHEALTHY", "10.1.0.6 [] UNHEALTHY",
			},
			nil,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := newModel("")
			fixture(t, m, plainService+"---\n"+sliceOf("s", test.slice))
			e := full(m)
			if got := shown(shardOf(t, e, "web.shop.svc.cluster.local")); !slices.Equal(got, test.endpoints) {
				t.Errorf("endpoints %q, want %q", got, test.endpoints)
			}
			want := map[string]string{}
			for field, part := range test.problems {
				want["EndpointSlice shop/s "+field] = part
			}
			wantProblems(t, e, want)
		})
	}
}

func shown(s *federation.Shard) []string {
	var out []string
	for _, e := range s.Endpoints {
		out = append(out, fmt.Sprintf("%s %v %s", e.Address, e.Ports, e.Health))
	}
	slices.Sort(out)
	return out
}

func TestPublishNotReadyAddresses(t *testing.T) {
	m := newModel("")
	fixture(t, m, strings.Replace(plainService, "spec: {", "spec: {publishNotReadyAddresses: true, ", 1)+"---\n"+sliceOf("s",
		"addressType: IPv4\nendpoints: [{addresses: [10.1.0.1], conditions: {ready: false}}, {addresses: [10.1.0.2], conditions: {ready: false, serving: true, terminating: true}}]"))
	want := []string{"10.1.0.1 [] HEALTHY", "10.1.0.2 [] DRAINING"}
	if got := shown(shardOf(t, full(m), "web.shop.svc.cluster.local")); !slices.Equal(got, want) {
		t.Errorf("endpoints %q, want %q", got, want)
	}
}

func TestBO5OrphansAndMovedSlices(t *testing.T) {
	m := newModel("")
	const rest = "addressType: IPv4\nendpoints: [{addresses: [10.1.0.1]}]"
	other := strings.ReplaceAll(plainService, "web", "other")
	orphan := strings.Replace(sliceOf("s", rest), "labels: {kubernetes.io/service-name: web}", "labels: {a: b}", 1)
	nobody := strings.Replace(sliceOf("s", rest), "service-name: web", "service-name: nobody", 1)
	moved := strings.Replace(sliceOf("s", rest), "service-name: web", "service-name: other", 1)
	fixture(t, m, strings.Join([]string{plainService, other, sliceOf("s", rest)}, "---\n"))
	for _, step := range []struct {
		slice      string
		web, other int
	}{{sliceOf("s", rest), 1, 0}, {orphan, 0, 0}, {nobody, 0, 0}, {moved, 0, 1}, {sliceOf("s", rest), 1, 0}} {
		fixture(t, m, step.slice)
		e := full(m)
		web, other := shardOf(t, e, "web.shop.svc.cluster.local"), shardOf(t, e, "other.shop.svc.cluster.local")
		if len(web.Endpoints) != step.web || len(other.Endpoints) != step.other {
			t.Errorf("web has %d, other %d after\n%s", len(web.Endpoints), len(other.Endpoints), step.slice)
		}
		wantProblems(t, e, nil)
	}
}

// TestTargetsThatDoNotFit: an address that is not the pod's gets nothing of it but
// what demands more of the server; the pod at the address counts, whatever
// UID the slice names (R80).
func TestTargetsThatDoNotFit(t *testing.T) {
	const rest = "addressType: IPv4\nendpoints: [{addresses: [10.9.9.9], targetRef: {kind: Pod, name: web-1}}, {addresses: [10.1.0.7], targetRef: {kind: Pod, name: web-1, uid: older}}]"
	m := newModel("")
	fixture(t, m, plainService+"---\n"+sliceOf("s", rest)+"---\n"+strings.Replace(podYAML, "startupProbe: {tcpSocket: {port: nowhere}}", "", 1))
	e := full(m)
	wantEndpoints(t, shardOf(t, e, "web.shop.svc.cluster.local"), []federation.Endpoint{
		{
			Address: ip("10.1.0.7"), Network: "default", Health: federation.Healthy, ServiceAccount: "shop/web", TLSMode: "istio",
			Workload: "shop/web-1", UID: "p1",
			Labels: map[string]string{"app": "web", "version": "v1", "security.istio.io/tlsMode": "istio"},
		},
		{Address: ip("10.9.9.9"), Network: "default", Health: federation.Healthy, ServiceAccount: "shop/web", TLSMode: "istio"},
	})
	wantProblems(t, e, map[string]string{"EndpointSlice shop/s endpoints[0].targetRef": "does not have the address 10.9.9.9"})
}

func TestNetworks(t *testing.T) {
	const rest = "addressType: IPv4\nendpoints: [{addresses: [10.1.0.7], targetRef: {kind: Pod, name: web-1}}, {addresses: [10.1.0.8]}]"
	namespace := func(network string) string {
		return "apiVersion: v1\nkind: Namespace\nmetadata: {name: kube-system, labels: {topology.istio.io/network: " + network + "}}\n"
	}
	podIn := func(network string) string {
		return strings.Replace(podYAML, "labels: {", "labels: {topology.istio.io/network: "+network+", ", 1)
	}
	for _, test := range []struct {
		name       string
		configured federation.NetworkID
		objects    []string
		pod, other federation.NetworkID
	}{
		{"Default", "", nil, "default", "default"},
		{"KubeSystem", "", []string{namespace("west")}, "west", "west"},
		{"ConfiguredWins", "east", []string{namespace("west")}, "east", "east"},
		{"PodWins", "east", []string{namespace("west"), podIn("pods")}, "pods", "east"},
		{"Invalid", "", []string{namespace("'a b'"), podIn("'x/y'")}, "default", "default"},
		{"KubeSystemChanges", "", []string{namespace("west"), namespace("north")}, "north", "north"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := newModel(test.configured)
			fixture(t, m, plainService+"---\n"+podYAML+"---\n"+sliceOf("s", rest))
			full(m)
			for _, o := range test.objects {
				fixture(t, m, o)
				m.edit(false)
			}
			e := full(m)
			for _, endpoint := range shardOf(t, e, "web.shop.svc.cluster.local").Endpoints {
				want := test.other
				if endpoint.Workload != "" {
					want = test.pod
				}
				if endpoint.Network != want {
					t.Errorf("endpoint %s is on network %q, want %q", endpoint.Address, endpoint.Network, want)
				}
			}
			if w := e.Workloads.Set[federation.WorkloadKey{Namespace: "shop", Name: "web-1"}]; w.Network != test.pod {
				t.Errorf("workload is on network %q", w.Network)
			}
		})
	}
}

func TestWorkloadsThatAreNone(t *testing.T) {
	for name, test := range map[string]struct {
		change    func(string) string
		there     bool
		addresses int
	}{
		"Running":   {func(s string) string { return s }, true, 2},
		"Succeeded": {func(s string) string { return strings.Replace(s, "Running", "Succeeded", 1) }, false, 0},
		"Failed":    {func(s string) string { return strings.Replace(s, "Running", "Failed", 1) }, false, 0},
		"NoAddress": {func(s string) string { return s[:strings.Index(s, "status:")] }, false, 0},
		"OnlyPodIP": {func(s string) string {
			return strings.Replace(s, ", podIPs: [{ip: 10.1.0.7}, {ip: 'fd00:1::7'}]", "", 1)
		}, true, 1},
		"BadAddress":  {func(s string) string { return strings.Replace(s, "{ip: 10.1.0.7}", "{ip: 10.1.0.007}", 1) }, true, 1},
		"HostNetwork": {func(s string) string { return strings.Replace(s, "spec:\n", "spec:\n  hostNetwork: true\n", 1) }, true, 0},
	} {
		m := newModel("")
		fixture(t, m, test.change(podYAML))
		w := full(m).Workloads.Set[federation.WorkloadKey{Namespace: "shop", Name: "web-1"}]
		if (w != nil) != test.there || w != nil && len(w.Addresses) != test.addresses {
			t.Errorf("%s: %+v", name, w)
		}
	}
}

func TestProblemsOfOneObjectAreBounded(t *testing.T) {
	m := newModel("")
	fixture(t, m, plainService+"---\n"+sliceOf("s", "addressType: IPv4\nendpoints: ["+strings.Repeat("{addresses: [x]}, ", 500)+"]"))
	e := full(m)
	if n := len(e.Problems.Set); n != federation.MostProblems+1 ||
		!strings.HasPrefix(e.Problems.Set["EndpointSlice shop/s (more)"].Message, "484 ") {
		t.Errorf("%d problems: %v", n, e.Problems.Set)
	}
}
