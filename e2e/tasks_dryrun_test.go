package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

// inDump says where a configuration dump has the resources of each type.
var inDump = []struct {
	list string
	path []string
}{
	{"dynamic_active_clusters", []string{"cluster"}},
	{"dynamic_listeners", []string{"active_state", "listener"}},
	{"dynamic_route_configs", []string{"route_config"}},
	{"dynamic_endpoint_configs", []string{"endpoint_config"}},
}

// resources are what an Envoy got from the hub, as JSON, by type and name.
func resources(t *testing.T, e *testbed.Envoy) map[string]string {
	t.Helper()
	var dump struct{ Configs []map[string]any }
	if err := json.Unmarshal(e.ConfigDump(), &dump); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, section := range dump.Configs {
		for _, in := range inDump {
			list, _ := section[in.list].([]any)
			for _, value := range list {
				for _, field := range in.path {
					inside, _ := value.(map[string]any)
					value = inside[field]
				}
				if r, ok := value.(map[string]any); ok { // a listener may only be going
					note(t, found, r)
				}
			}
		}
	}
	return found
}

func note(t *testing.T, found map[string]string, r map[string]any) {
	t.Helper()
	name, _ := r["name"].(string)
	if name == "" {
		name, _ = r["cluster_name"].(string)
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	found[path.Base(r["@type"].(string))+" "+name] = string(text)
}

// difference is the action for each resource that differs.
func difference(before, after map[string]string) map[string]string {
	changes := map[string]string{}
	for key := range before {
		if _, stays := after[key]; !stays {
			changes[key] = "DELETE"
		}
	}
	for key, text := range after {
		switch was, known := before[key]; {
		case !known:
			changes[key] = "CREATE"
		case was != text:
			changes[key] = "UPDATE"
		}
	}
	return changes
}

// testDryRun compares what a dry run foresees with what the Envoys then get.
func testDryRun(t *testing.T, w *tasks) {
	w.task(t, "reviews-v1")
	w.only(t, "v1")
	envoys := map[string]*testbed.Envoy{"productpage": w.caller.envoy, "ingress": w.ingress}
	before := map[string]map[string]string{}
	for name, e := range envoys {
		testbed.WaitFor(t, within, "listeners of earlier tasks to be gone", func() error {
			if n := e.Stat("listener_manager.total_listeners_draining"); n > 0 {
				return fmt.Errorf("%s drains %d", name, n)
			}
			return nil
		})
		before[name] = resources(t, e)
	}
	input := w.input(t, "reviews-80-20")
	input["dryRun"] = true
	delete(input, "waitFor")
	dry := w.hub.change(t, "apply", input)
	foreseen, concerned := map[string]string{}, map[string]bool{}
	if dry.Preview == nil {
		t.Fatal("there is no preview")
	}
	for _, r := range dry.Preview.Resources {
		foreseen[path.Base(r.TypeURL)+" "+r.Name] = r.Action
		if r.Diff == "" {
			t.Errorf("%s %s differs in nothing", r.TypeURL, r.Name)
		}
	}
	for _, p := range dry.Preview.Proxies {
		concerned[strings.Split(p.NodeID, "~")[2]] = true
	}
	w.only(t, "v1") // nothing has changed
	w.task(t, "reviews-80-20")
	testbed.WaitFor(t, within, "what was foreseen", func() error {
		happened := map[string]string{}
		for name, e := range envoys {
			changes := difference(before[name], resources(t, e))
			maps.Copy(happened, changes)
			if (len(changes) > 0) != concerned[name+".shop"] {
				return fmt.Errorf("%s: it got %v, the dry run names the proxies %v", name, changes, concerned)
			}
		}
		if !maps.Equal(foreseen, happened) || len(happened) == 0 {
			return fmt.Errorf("foreseen was %v, what happened is %v", listed(foreseen), listed(happened))
		}
		return nil
	})
}

func listed(changes map[string]string) []string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(changes)) {
		all = append(all, changes[key]+" "+key)
	}
	return all
}
