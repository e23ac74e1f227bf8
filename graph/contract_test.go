package graph_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation/federationtest"
	"isthmus.dev/isthmus/federation/fleet"
)

// updating reports whether the flag -update of federationtest is set.
func updating() bool { return flag.Lookup("update").Value.String() == "true" }

// TestContractIsAnswered sends the operations of the contract that read the mesh
// word for word and compares the whole answer with testdata/contract/OPERATION.json.
func TestContractIsAnswered(t *testing.T) {
	variables := map[string]map[string]any{
		"Services": {"filter": map[string]any{"clusterID": "c2", "networkID": "n2", "hostnameContains": "W", "provider": "KUBERNETES"}},
		"Service":  {"hostname": web.Hostname, "namespace": web.Namespace},
		"Proxies": {
			"filter":  map[string]any{"networkID": "edge", "type": "ROUTER", "syncState": "NOT_REQUESTED"},
			"orderBy": map[string]any{"field": "CONNECTED_AT", "direction": "DESC"},
		},
	}
	texts := contract(t)
	for _, name := range []string{"Overview", "Clusters", "Service", "Services", "Proxies"} {
		t.Run(name, func(t *testing.T) {
			data, errs := newHub(t).send(texts[name], variables[name])
			if len(errs) > 0 {
				t.Fatal(string(errs))
			}
			compare(t, filepath.Join("testdata", "contract", name+".json"), indented(t, withoutOpaque(data)))
		})
	}
}

// TestContractOfConfigurationIsAnswered sends those that change and read the
// configuration, as one story.
func TestContractOfConfigurationIsAnswered(t *testing.T) {
	texts, c := contract(t), newConfigured(t, nil)
	cart := map[string]any{"group": networking, "kind": "VirtualService", "namespace": "shop", "name": "cart"}
	for i, step := range []struct {
		operation string
		variables map[string]any
	}{
		{"Apply", input(map[string]any{
			"manifests": routes(route("shop", "cart", "a"), route("shop", "hidden", "a")),
			"message":   "first", "ticket": "t1",
		})},
		{"Apply", input(map[string]any{
			"manifests": []string{route("shop", "cart", "b")}, "dryRun": true, "expectedRevision": "1",
			"expectedRevisions": []any{map[string]any{
				"group": networking, "kind": "VirtualService", "namespace": "shop",
				"name": "cart", "revision": "1",
			}},
			"waitFor": map[string]any{"state": "ACKED", "share": 0.5, "timeout": "1s"},
		})},
		{"Apply", input(map[string]any{"files": []any{map[string]any{"name": "bad.yaml", "content": route("shop", "cart", "BAD")}}})},
		{"Apply", input(map[string]any{
			"manifests": route("shop", "cart", "b"), "message": "second", "fieldManager": "ci", "force": true,
			"set": "s", "prune": true, "idempotencyKey": "k",
		})},
		{"ConfigObjects", map[string]any{"kind": "VirtualService", "namespace": "shop", "first": 2}},
		{"Rollback", input(map[string]any{"to": "1", "message": "back"})},
		{"Delete", input(map[string]any{"objects": []any{cart}, "expectedRevision": "3"})},
		{"Delete", input(map[string]any{"objects": []any{cart}, "dryRun": true})},
		{"Rollback", input(map[string]any{"to": "99", "dryRun": true})},
		{"History", map[string]any{"filter": map[string]any{"kind": "VirtualService", "namespace": "shop", "name": "hidden"}}},
		{"History", map[string]any{"first": 1, "filter": map[string]any{"since": "2026-11-21T12:00:00Z", "until": "2026-11-21T12:00:01Z"}}},
	} {
		data, errs := c.send(texts[step.operation], step.variables)
		if len(errs) > 0 {
			t.Fatal(step.operation, string(errs))
		}
		compare(t, filepath.Join("testdata", "contract", fmt.Sprintf("config-%d-%s.json", i+1, step.operation)), indented(t, withoutOpaque(data)))
	}
}

func TestContractIsAnsweredInPagesOf500(t *testing.T) {
	h, c := newHub(t), newConfigured(t, nil)
	for name, text := range contract(t) {
		variables := map[string]any{"first": 500, "hostname": web.Hostname, "namespace": web.Namespace, "nodeID": sidecarID}
		switch {
		case name == "ConfigObjects" || name == "History":
			if _, errs := c.ask(text, variables); errs != "" {
				t.Errorf("%s: %s", name, errs)
			}
		case strings.HasPrefix(text, "query") && name != "Explain": // has no pages
			if _, errs := h.ask(text, variables); errs != "" {
				t.Errorf("%s: %s", name, errs)
			}
		}
	}
}

// TestContractIsAnsweredOfScenarios sends operations that read the mesh to hubs that
// have read real scenarios.
func TestContractIsAnsweredOfScenarios(t *testing.T) {
	texts, asked := contract(t), 0
	variables := map[string]any{"hostname": "web.shop.svc.cluster.local", "orderBy": map[string]any{"field": "CONFLICTS", "direction": "DESC"}}
	federationtest.Each(t, func(t *testing.T, s *federationtest.Scenario) {
		folder := filepath.Join("testdata", "contract", filepath.Base(t.Name()))
		if _, err := os.Stat(folder); err != nil {
			return
		}
		asked++
		for _, name := range []string{"Overview", "Clusters", "Service", "Services"} {
			data, errs := hubOver(t, s.Snapshot(), fleet.New()).send(texts[name], variables)
			if len(errs) > 0 {
				t.Fatal(name, string(errs))
			}
			compare(t, filepath.Join(folder, name+".json"), indented(t, withoutOpaque(data)))
		}
	})
	if asked != 3 {
		t.Errorf("%d scenarios were asked, want 3", asked)
	}
}

func compare(t *testing.T, file string, got []byte) {
	t.Helper()
	if updating() {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the answer differs from %s (run with -update to accept)\n%s", file, got)
	}
}

// withoutOpaque puts a star in place of what clients must not look into.
func withoutOpaque(data json.RawMessage) json.RawMessage {
	return regexp.MustCompile(`"(id|contentHash|endCursor)":"[^"]+"`).ReplaceAll(data, []byte(`"$1":"*"`))
}

func indented(t *testing.T, data json.RawMessage) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := json.Indent(&out, data, "", "  "); err != nil {
		t.Fatal(err)
	}
	return append(out.Bytes(), '\n')
}

// TestContractOfChangesComesOverTheWire subscribes as a client does, word for
// word.
func TestContractOfChangesComesOverTheWire(t *testing.T) {
	c := newConfigured(t, nil)
	server := httptest.NewServer(c.handler)
	defer server.Close()
	body, err := json.Marshal(map[string]any{"query": contract(t)["Changes"], "variables": map[string]any{
		"after":  nil,
		"filter": map[string]any{"namespace": "shop"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/graphql", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "text/event-stream")
	answer, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	events := bufio.NewScanner(answer.Body)
	next := func() string {
		for events.Scan() {
			if data, ok := strings.CutPrefix(events.Text(), "data: "); ok {
				return data
			}
		}
		t.Fatal("the stream has ended")
		return ""
	}
	if first := next(); !strings.Contains(first, `"resync":true`) || !strings.Contains(first, `"name":"filed"`) ||
		strings.Contains(first, "errors") {
		t.Errorf("first comes %s", first)
	}
	c.apply(route("shop", "cart", "x"))
	if then := next(); !strings.Contains(then,
		`"action":"CREATE","object":{"group":"networking.istio.io","kind":"VirtualService","namespace":"shop","name":"cart","revision":"1","current":{"status":{`) {
		t.Errorf("then comes %s", then)
	}
}
