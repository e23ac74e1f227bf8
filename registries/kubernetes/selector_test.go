package kubernetes

import (
	"net/netip"
	"testing"

	"isthmus.dev/isthmus/federation"
)

// TestServicesSelectWorkloadEntries: the Service says whose workloads it selects
// and where they listen, unless they say so themselves.
func TestServicesSelectWorkloadEntries(t *testing.T) {
	external := []federation.Provider{federation.External}
	app := map[string]string{"app": "web"}
	for name, test := range map[string]struct {
		spec string
		want *federation.Selector
	}{
		"no selector":    {"ports: [{name: http, port: 80}]", nil},
		"empty selector": {"selector: {}, ports: [{name: http, port: 80}]", nil},
		"same port": {
			"selector: {app: web}, ports: [{name: http, port: 80, targetPort: 80}]",
			&federation.Selector{Labels: app, Providers: external},
		},
		"no targetPort": {"selector: {app: web}, ports: [{port: 80}]", &federation.Selector{Labels: app, Providers: external}},
		"numeric targetPort": {
			"selector: {app: web}, ports: [{name: http, port: 80, targetPort: 8080}, {name: grpc, port: 90, targetPort: 90}]",
			&federation.Selector{Labels: app, Providers: external, TargetPorts: map[string]uint16{"http": 8080}},
		},
		"named targetPort": {
			"selector: {app: web}, ports: [{name: http, port: 80, targetPort: web}]",
			&federation.Selector{Labels: app, Providers: external, TargetNames: map[string]string{"http": "web"}},
		},
		"port excluded": {
			"selector: {app: web}, ports: [{name: a, port: 80}, {name: a, port: 81, targetPort: 8081}]",
			&federation.Selector{Labels: app, Providers: external},
		},
		"external name": {"type: ExternalName, externalName: api.example.com, selector: {app: web}", nil},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel("")
			fixture(t, m, meta1+"spec: {"+test.spec+"}")
			if got := shardOf(t, full(m), "web.shop.svc.cluster.local").Selector; !got.Equal(test.want) {
				t.Errorf("selector is %+v, want %+v", got, test.want)
			}
		})
	}
}

// TestServiceSelectsAWorkloadEntryOfTheHub: the Service's shard, as the registry
// hands it over, finds the entry where the entry or the Service says that it
// listens; a port that only a pod could resolve is not served.
func TestServiceSelectsAWorkloadEntryOfTheHub(t *testing.T) {
	m := newModel("")
	fixture(t, m,
		meta1+
			"spec: {clusterIP: 10.96.0.9, selector: {app: web}, ports: [{name: http, port: 80, targetPort: web}, {name: grpc, port: 90, targetPort: 9090}, {name: admin, port: 91, targetPort: admin}]}")
	e := full(m)
	e.Source = federation.ShardKey{Cluster: "c1", Provider: federation.Kubernetes}
	s, _ := federation.Next(federation.Empty(), e)
	s, changes := federation.Next(s, federation.Edit{
		Source: federation.ShardKey{Cluster: "hub", Provider: federation.External},
		Workloads: federation.Delta[federation.WorkloadKey, *federation.Workload]{Set: map[federation.WorkloadKey]*federation.Workload{
			{Namespace: "shop", Name: "vm"}: {
				Addresses: []netip.Addr{netip.MustParseAddr("10.9.0.1")}, Labels: map[string]string{"app": "web"},
				Ports: []federation.EndpointPort{{Name: "web", Number: 8080}},
			},
		}},
	})
	if changes.Reasons() != federation.ReasonEndpoints {
		t.Errorf("changes are %v", changes.Reasons())
	}
	services := s.ByHostname("web.shop.svc.cluster.local")
	got := map[uint16]uint16{}
	for _, i := range services[0].Instances(0) {
		got[i.Port.Number] = i.Number
		if i.Cluster() != "hub" || i.Endpoint.Workload != "shop/vm" {
			t.Errorf("instance %+v", i)
		}
	}
	if len(got) != 2 || got[80] != 8080 || got[90] != 9090 {
		t.Errorf("served are %v, want 80 at 8080 and 90 at 9090", got)
	}
}

// TestHealthOfPods: a pod that a ServiceEntry selects has no EndpointSlice to say
// how it is.
func TestHealthOfPods(t *testing.T) {
	const gone = ", deletionTimestamp: '2026-01-02T03:04:05Z'"
	for name, test := range map[string]struct {
		meta, status string
		want         federation.Health
	}{
		"ready":                  {"", `conditions: [{type: Ready, status: "True"}]`, federation.Healthy},
		"not ready":              {"", `conditions: [{type: Ready, status: "False"}]`, federation.Unhealthy},
		"unknown":                {"", `conditions: [{type: Ready, status: Unknown}]`, federation.Unhealthy},
		"nothing said":           {"", `conditions: [{type: ContainersReady, status: "True"}]`, federation.Unhealthy},
		"terminating, ready":     {gone, `conditions: [{type: Ready, status: "True"}]`, federation.Draining},
		"terminating, not ready": {gone, `conditions: [{type: Ready, status: "False"}]`, federation.Unhealthy},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel("")
			fixture(t, m, "kind: Pod\nmetadata: {name: web-1, namespace: shop, labels: {security.istio.io/tlsMode: disabled}"+test.meta+
				"}\nstatus: {podIP: 10.1.0.7, "+test.status+"}")
			w := full(m).Workloads.Set[federation.WorkloadKey{Namespace: "shop", Name: "web-1"}]
			if w == nil || w.Health != test.want || w.TLSMode != "disabled" || len(w.Ports) != 0 {
				t.Errorf("workload is %+v, want %s", w, test.want)
			}
		})
	}
}

// TestPodOnItsHostsNetworkIsSelectedAtItsHost: though it owns no address.
func TestPodOnItsHostsNetworkIsSelectedAtItsHost(t *testing.T) {
	m := newModel("")
	fixture(t, m, "kind: Pod\nmetadata: {name: agent, namespace: shop}\nspec: {hostNetwork: true}\nstatus: {podIP: 192.168.0.3}")
	w := full(m).Workloads.Set[federation.WorkloadKey{Namespace: "shop", Name: "agent"}]
	if w == nil || len(w.Addresses) != 0 || w.Host != ip("192.168.0.3") {
		t.Errorf("workload is %+v", w)
	}
}
