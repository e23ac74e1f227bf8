package config_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
)

func annotated(manifest, annotations string) string {
	return strings.Replace(manifest, "metadata: {", "metadata: {annotations: "+annotations+", ", 1)
}

// health is what a proxy reports about the WorkloadEntry of that name.
func health(name, spec string) string {
	return fmt.Sprintf("apiVersion: isthmus.dev/v1\nkind: WorkloadHealth\nmetadata: {name: %s, namespace: shop}\nspec: %s", name, spec)
}

// TestK78OneReportCostsOneWorkload: among many WorkloadEntries, a report changes its workload and its problem, and one
// that says what is known changes nothing.
func TestK78OneReportCostsOneWorkload(t *testing.T) {
	state := config.NewState(config.Options{Hub: "hub"})
	var all []config.Event
	for i := range 100 {
		of := workload(fmt.Sprintf("vm-%d", i), fmt.Sprintf(`{address: 10.0.0.%d, labels: {app: x}}`, i))
		all = append(all, config.Event{New: object(t, 1, annotated(of, `{proxy.istio.io/health-checks-enabled: "true"}`))})
	}
	state, edit := state.Next(all, 1)
	if n := len(edit.Problems.Set); n != 100 {
		t.Fatalf("before any report there are %d problems", n)
	}
	key := federation.WorkloadKey{Namespace: "shop", Name: "vm-7"}
	for _, said := range []struct {
		unhealthy string
		workloads int
		health    federation.Health
		set, gone int
	}{
		{"", 1, "", 0, 1}, {"", 0, "", 0, 0}, {"refused", 1, federation.Unhealthy, 1, 0}, {"slow", 0, "", 1, 0}, {"", 1, "", 0, 1},
	} {
		report := object(t, 2, health("vm-7", fmt.Sprintf(`{account: shop/default, address: 10.0.0.7, unhealthy: %q}`, said.unhealthy)))
		state, edit = state.Next([]config.Event{{New: report}}, 2)
		w := edit.Workloads.Set[key]
		if len(edit.Workloads.Set) != said.workloads || said.workloads > 0 && (w == nil || w.Health != said.health) ||
			len(edit.Problems.Set) != said.set || len(edit.Problems.Gone) != said.gone || len(edit.Objects.Set)+len(edit.Services.Set) != 0 {
			t.Errorf("reported %q: the edit is %+v", said.unhealthy, edit)
		}
	}
}

// TestK78AgentsOfIstiodDecideThroughTheStatus: a WorkloadEntry of a cluster is as healthy as its condition says, also after
// a change of that alone, while no agent reports to the hub.
func TestK78AgentsOfIstiodDecideThroughTheStatus(t *testing.T) {
	of := annotated(workload("vm-1", `{address: 10.0.0.1}`), `{proxy.istio.io/health-checks-enabled: "true"}`)
	condition := func(status, message string) string {
		return fmt.Sprintf("%s\nstatus: {conditions: [{type: Healthy, status: %q, message: %q}]}", of, status, message)
	}
	followHealth(t, []healthStep{
		{condition("True", ""), "", ""},
		{condition("False", "connection refused"), federation.Unhealthy, "its agent reports to istiod: connection refused"},
		{condition("Unknown", ""), federation.Unhealthy, "the condition Healthy of its status is not True"},
		{condition("True", ""), "", ""},
		{of, federation.Unhealthy, "no agent reports for it"},
		{condition("False", "slow"), federation.Unhealthy, "slow"},
		{health("vm-1", `{account: shop/default, address: 10.0.0.1, unhealthy: ""}`), "", ""},
	})
}

// healthStep applies an object, and says how healthy the WorkloadEntry vm-1 is then.
type healthStep struct {
	manifest string
	health   federation.Health
	says     string // by a problem; empty: there is none
}

// followHealth takes the steps one after the other.
func followHealth(t *testing.T, steps []healthStep) {
	t.Helper()
	state := config.NewState(config.Options{Hub: "hub"})
	var w *federation.Workload
	problems := map[string]federation.Problem{}
	for revision, step := range steps {
		var edit federation.Edit
		state, edit = state.Next([]config.Event{{New: object(t, int64(revision+1), step.manifest)}}, int64(revision+1))
		if now, changed := edit.Workloads.Set[federation.WorkloadKey{Namespace: "shop", Name: "vm-1"}]; changed {
			w = now
		}
		if w == nil || w.Health != step.health {
			t.Errorf("%s: the workload is %+v, want the health %q", step.manifest, w, step.health)
		}
		for _, gone := range edit.Problems.Gone {
			delete(problems, gone)
		}
		maps.Copy(problems, edit.Problems.Set)
		said := fmt.Sprint(problems)
		if !strings.Contains(said, step.says) || (len(problems) == 0) != (step.says == "") {
			t.Errorf("%s: the problems are %s, want %q", step.manifest, said, step.says)
		}
	}
}

// TestK80ConditionOfWorkloadsWithoutIPAddresses: no agent can report to the hub for a DNS name or a socket, so that istiod's
// condition alone decides about a WorkloadEntry of a cluster. Elsewhere the annotation has no effect, and says so.
func TestK80ConditionOfWorkloadsWithoutIPAddresses(t *testing.T) {
	for _, address := range []string{"vm.example.com", "unix:///run/app.sock"} {
		plain := workload("vm-1", fmt.Sprintf(`{address: %q}`, address))
		of := annotated(plain, `{proxy.istio.io/health-checks-enabled: "true"}`)
		followHealth(t, []healthStep{
			{of, "", "has no effect"},
			{of + "\nstatus: {}", federation.Unhealthy, "its status has no condition Healthy"},
			{of + "\nstatus: {conditions: [{type: Healthy, status: 'True'}]}", "", ""},
			{of + "\nstatus: {conditions: [{type: Healthy, status: 'False', message: slow}]}", federation.Unhealthy, "reports to istiod: slow"},
			{health("vm-1", `{account: shop/default, unhealthy: ""}`), federation.Unhealthy, "reports to istiod: slow"},
			{of + "\nstatus: {}", federation.Unhealthy, "no agent reports for it to the istiod"},
			{plain, "", ""},
		})
	}
}
