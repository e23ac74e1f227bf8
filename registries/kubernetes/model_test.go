package kubernetes

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"isthmus.dev/isthmus/federation"
)

// changesOf is the edit that the step makes.
func changesOf(t *testing.T, m *model, step func()) federation.Edit {
	t.Helper()
	step()
	e, _ := m.edit(false)
	return e
}

// pair is two services with a pod each, on two nodes.
func pair(t *testing.T) *model {
	t.Helper()
	m := newModel("")
	one := strings.Join([]string{serviceYAML, podYAML, nodeYAML, sliceYAML}, "---\n")
	fixture(t, m, one+"---\n"+strings.NewReplacer("web", "api", "10.1.0.", "10.2.0.", "10.96.0.9", "10.96.0.10", "name: n1", "name: m1",
		"nodeName: n1", "nodeName: m1", "fd00:1", "fd00:2").Replace(one))
	full(m)
	return m
}

func TestChangesTouchOnlyWhatDependsOnThem(t *testing.T) {
	web := key{Namespace: "shop", Name: "web"}
	for _, test := range []struct {
		name                string
		step                func(*testing.T, *model)
		services, workloads string
	}{
		{"TheSameAgain", func(t *testing.T, m *model) {
			fixture(t, m, strings.Join([]string{serviceYAML, podYAML, nodeYAML, sliceYAML}, "---\n"))
		}, "", ""},
		{"Slice", func(t *testing.T, m *model) { fixture(t, m, strings.Replace(sliceYAML, "10.1.0.9", "10.1.0.10", 1)) }, "web", ""},
		{"SliceGone", func(_ *testing.T, m *model) { m.remove(kindSlices, key{Namespace: "shop", Name: "web-a"}) }, "web", ""},
		{"PodLabels", func(t *testing.T, m *model) { fixture(t, m, strings.Replace(podYAML, "version: v1", "version: v2", 1)) }, "web", "web-1"},
		{"PodProbe", func(t *testing.T, m *model) { fixture(t, m, strings.Replace(podYAML, "/ready", "/up", 1)) }, "", "web-1"},
		{
			"PodGone", func(_ *testing.T, m *model) { m.remove(kindPods, key{Namespace: "shop", Name: "web-1"}) }, "",
			"-web-1",
		}, // the endpoint stays (R80)
		{"Node", func(t *testing.T, m *model) { fixture(t, m, strings.Replace(nodeYAML, "eu-1", "eu-3", 1)) }, "web", "web-1"},
		{"NodeOfNoPod", func(t *testing.T, m *model) {
			fixture(t, m, "apiVersion: v1\nkind: Node\nmetadata: {name: n2, labels: {topology.kubernetes.io/region: us}}")
		}, "api web", ""},
		{"NodeGone", func(_ *testing.T, m *model) { m.remove(kindNodes, key{Name: "n1"}) }, "web", "web-1"},
		{"Service", func(t *testing.T, m *model) { fixture(t, m, strings.Replace(serviceYAML, "9000", "9001", 1)) }, "web", ""},
		{"ServiceGone", func(_ *testing.T, m *model) { m.remove(kindServices, web) }, "-web", ""},
		{"ServiceRecreated", func(t *testing.T, m *model) {
			m.remove(kindServices, web)
			fixture(t, m, strings.Replace(serviceYAML, "namespace: shop,", "namespace: shop, uid: u2,", 1))
		}, "web", ""},
		{"AddedAndGone", func(t *testing.T, m *model) {
			fixture(t, m, strings.ReplaceAll(plainService, "web", "brief"))
			m.remove(kindServices, key{Namespace: "shop", Name: "brief"})
		}, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := pair(t)
			e := changesOf(t, m, func() { test.step(t, m) })
			var services, workloads []string
			for k := range e.Services.Set {
				services = append(services, strings.TrimSuffix(string(k.Hostname), ".shop.svc.cluster.local"))
			}
			for _, k := range e.Services.Gone {
				services = append(services, "-"+strings.TrimSuffix(string(k.Hostname), ".shop.svc.cluster.local"))
			}
			for k := range e.Workloads.Set {
				workloads = append(workloads, k.Name)
			}
			for _, k := range e.Workloads.Gone {
				workloads = append(workloads, "-"+k.Name)
			}
			if got := sorted(services); got != test.services {
				t.Errorf("services %q, want %q", got, test.services)
			}
			if got := sorted(workloads); got != test.workloads {
				t.Errorf("workloads %q, want %q", got, test.workloads)
			}
			sameAsFromNothing(t, m)
		})
	}
}

func TestProblemsHeal(t *testing.T) {
	m := newModel("")
	bad := sliceOf("s", "addressType: IPv4\nports: [{name: http, port: 70000}]\nendpoints: [{addresses: [10.1.0.1]}]")
	fixture(t, m, plainService+"---\n"+bad)
	const name = "EndpointSlice shop/s ports[0].port"
	wantProblems(t, full(m), map[string]string{name: "70000"})
	e := changesOf(t, m, func() { fixture(t, m, strings.Replace(bad, "70000", "66000", 1)) })
	wantProblems(t, e, map[string]string{name: "66000"})
	e = changesOf(t, m, func() { fixture(t, m, strings.Replace(bad, "70000", "8080", 1)) })
	if len(e.Problems.Gone) != 1 || e.Problems.Gone[0] != name {
		t.Errorf("problems gone: %v", e.Problems.Gone)
	}
	fixture(t, m, bad)
	full(m)
	e = changesOf(t, m, func() { m.remove(kindSlices, key{Namespace: "shop", Name: "s"}) })
	if len(e.Problems.Gone) != 1 {
		t.Errorf("the problem of an object that is gone stays: %v", e.Problems)
	}
}

// TestBO2VIPAsEndpoint: whichever comes first, the address of a service is
// refused as an endpoint, and taken once the service is gone.
func TestBO2VIPAsEndpoint(t *testing.T) {
	m := newModel("")
	fixture(t, m, plainService+"---\n"+sliceOf("s", "addressType: IPv4\nendpoints: [{addresses: [10.96.0.77]}]"))
	count := func() int { return len(shardOf(t, full(m), "web.shop.svc.cluster.local").Endpoints) }
	if count() != 1 {
		t.Fatal("the endpoint is not there")
	}
	fixture(t, m, strings.NewReplacer("web", "other", "10.96.0.9", "10.96.0.77").Replace(plainService))
	if count() != 0 {
		t.Error("the address of another service is an endpoint")
	}
	m.remove(kindServices, key{Namespace: "shop", Name: "other"})
	if count() != 1 {
		t.Error("the endpoint did not come back")
	}
	wantProblems(t, full(m), nil)
}

func TestReplaceIsTheWholeList(t *testing.T) {
	m := pair(t)
	services := []object{parse(t, strings.Replace(serviceYAML, "9000", "9002", 1)), parse(t, strings.ReplaceAll(plainService, "web", "new"))}
	if !m.replace(kindServices, services, false) {
		t.Error("a list with differences makes none")
	}
	e, _ := m.edit(true)
	if !e.Services.Full || len(e.Services.Set) != 2 || e.Workloads.Set == nil {
		t.Errorf("edit %+v", e)
	}
	sameAsFromNothing(t, m)
	for _, o := range services {
		o.base().version = "7"
	}
	m.replace(kindServices, services, false)
	if m.replace(kindServices, services, false) {
		t.Error("the same list makes a difference")
	}
	if !m.replace(kindServices, services, true) {
		t.Error("equal versions of another history are taken as equal objects")
	}
}

// TestAnyOrderOfEventsGivesTheSame sets and removes objects in random orders,
// with edits in between.
func TestAnyOrderOfEventsGivesTheSame(t *testing.T) {
	var pool []string
	for i := range 4 {
		r := strings.NewReplacer("web", fmt.Sprint("web", i), "10.1.0.", fmt.Sprintf("10.%d.0.", i), "10.96.0.9", fmt.Sprintf("10.96.0.%d", i))
		for _, d := range []string{
			serviceYAML, podYAML, sliceYAML, nodeYAML, strings.Replace(nodeYAML, "n1", "n2", 1),
			strings.Replace(sliceYAML, "10.1.0.8", "10.96.0.2", 1),
		} {
			pool = append(pool, r.Replace(d))
		}
	}
	pool = append(pool, "apiVersion: v1\nkind: Namespace\nmetadata: {name: kube-system, labels: {topology.istio.io/network: west}}\n")
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		m := newModel("")
		for range 60 {
			o := parse(t, pool[r.IntN(len(pool))])
			if r.IntN(3) == 0 {
				m.remove(kindOf(o), o.base().k)
			} else {
				m.set(o)
			}
			if r.IntN(4) == 0 {
				m.edit(false)
			}
		}
		sameAsFromNothing(t, m)
	}
}

// sameAsFromNothing compares the model's state with that of a new model which
// gets the same objects in another order, and what was known of missing pods.
func sameAsFromNothing(t *testing.T, m *model) {
	t.Helper()
	step := written(t, full(m))
	again := newModel(m.configured)
	again.setNetwork(m.cluster.Network)
	again.absences.missing = maps.Clone(m.absences.missing)
	for _, o := range m.nodes {
		again.set(o)
	}
	for _, o := range m.defaults {
		again.set(o)
	}
	for _, o := range m.slices.all {
		again.set(o)
	}
	for _, o := range m.services {
		again.set(o)
	}
	for _, o := range m.pods {
		again.set(o)
	}
	if diff := cmp.Diff(written(t, full(again)), step); diff != "" {
		t.Errorf("from nothing (-), step by step (+):\n%s", diff)
	}
}

func written(t *testing.T, e federation.Edit) string {
	t.Helper()
	out := map[string]any{}
	for k, v := range e.Services.Set {
		out["service "+k.String()] = v
	}
	for k, v := range e.Workloads.Set {
		out["workload "+k.String()] = v
	}
	for k, v := range e.Problems.Set {
		out["problem "+k] = v
	}
	text, err := json.MarshalIndent(out, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
