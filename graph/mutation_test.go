package graph_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/graph"
)

const (
	applying    = `mutation($input:ApplyInput!){apply(input:$input){dryRun revision changes{action object{name revision} diff} findings{code} userErrors{code message field file document line column manager docUrl object{name}}}}`
	deleting    = `mutation($input:DeleteInput!){delete(input:$input){dryRun revision changes{action object{name}} userErrors{code field object{name}}}}`
	rollingBack = `mutation($input:RollbackInput!){rollback(input:$input){dryRun revision changes{action object{name}} userErrors{code field}}}`
)

func TestApplyHandsEverythingOver(t *testing.T) {
	c := newConfigured(t, nil)
	c.answer(applying, input(map[string]any{
		"files": []any{
			map[string]any{"name": "a.yaml", "content": route("shop", "a", "x")},
			map[string]any{"name": "b.yaml", "content": route("shop", "b", "x")},
		},
		"dryRun": true, "fieldManager": "ci", "force": true, "set": "s", "prune": true, "message": "why",
		"idempotencyKey": "k", "expectedRevision": "0",
		"expectedRevisions": []any{map[string]any{
			"group": networking, "kind": "VirtualService", "namespace": "shop",
			"name": "a", "revision": "7",
		}},
	}))
	zero := int64(0)
	want := apply.Request{
		Manifests: []apply.File{{Name: "a.yaml", Data: route("shop", "a", "x")}, {Name: "b.yaml", Data: route("shop", "b", "x")}},
		DryRun:    true, Manager: "ci", Force: true, Set: "s", Prune: true, ExpectedRevision: &zero,
		ExpectedRevisions: map[federation.ObjectKey]int64{routeKey("shop", "a"): 7},
		Origin:            apply.Origin{Message: "why", IdempotencyKey: "k"},
	}
	if !reflect.DeepEqual(c.engine.applied, want) {
		t.Errorf("got %+v", c.engine.applied)
	}
}

func TestRefusedContentIsToldAsUserErrors(t *testing.T) {
	c := newConfigured(t, nil)
	data := c.answer(applying, input(map[string]any{"manifests": []string{route("shop", "a", "x"), route("shop", "b", "BAD")}}))
	c.want(data, []any{map[string]any{
		"code": "INVALID", "message": "this is bad", "field": "spec.hosts[0]", "file": "manifests[1]",
		"document": 1.0, "line": 7.0, "column": 3.0,
		"manager": "someone", "docUrl": "https://isthmus.dev/docs/errors#invalid", "object": map[string]any{"name": "b"},
	}}, "apply", "userErrors")
	c.want(data, []any{}, "apply", "changes")
}

func TestWrongInputsAreToldByTheirFields(t *testing.T) {
	c := newConfigured(t, nil)
	one := func(fields map[string]any) map[string]any {
		fields["manifests"] = route("shop", "a", "x")
		return fields
	}
	object := map[string]any{"group": networking, "kind": "VirtualService", "namespace": "shop", "name": "a"}
	expected := func(revision string) map[string]any {
		return map[string]any{"group": networking, "kind": "VirtualService", "namespace": "shop", "name": "a", "revision": revision}
	}
	wait := func(share float64, timeout string) map[string]any {
		return map[string]any{"waitFor": map[string]any{"state": "ACKED", "share": share, "timeout": timeout}}
	}
	for field, cases := range map[string][]struct {
		mutation string
		input    map[string]any
	}{
		"manifests": {{applying, map[string]any{}}, {applying, one(map[string]any{"files": []any{}})}},
		"expectedRevision": {
			{applying, one(map[string]any{"expectedRevision": "x"})},
			{deleting, map[string]any{"objects": []any{object}, "expectedRevision": "-1"}},
		},
		"expectedRevisions[1].revision": {
			{applying, one(map[string]any{"expectedRevisions": []any{expected("1"), expected("1e3")}})},
			{applying, one(map[string]any{"expectedRevisions": []any{expected("1"), expected("2")}})},
		},
		"waitFor.share":   {{applying, one(wait(1.5, "1s"))}, {applying, one(wait(-0.1, "1s"))}},
		"waitFor.timeout": {{applying, one(wait(1, "soon"))}, {applying, one(wait(1, "-1s"))}, {applying, one(wait(1, "11m"))}},
		"to":              {{rollingBack, map[string]any{"to": "9999999999999999999999"}}, {rollingBack, map[string]any{"to": ""}}},
	} {
		for _, wrong := range cases {
			data := c.answer(wrong.mutation, input(wrong.input))
			for _, payload := range data {
				if at(payload, "userErrors", 0, "field") != field || at(payload, "userErrors", 0, "code") != "INVALID_REQUEST" {
					t.Errorf("%v gets %v, want %s", wrong.input, payload, field)
				}
			}
		}
	}
	if c.engine.objects.Latest().Revision() != 0 {
		t.Error("a wrong input has changed something")
	}
}

func TestDryRunsChangeNothing(t *testing.T) {
	c := newConfigured(t, nil)
	c.apply(route("shop", "a", "x"))
	object := map[string]any{"group": networking, "kind": "VirtualService", "namespace": "shop", "name": "a"}
	for mutation, fields := range map[string]map[string]any{
		applying:    {"manifests": route("shop", "b", "x")},
		deleting:    {"objects": []any{object}},
		rollingBack: {"to": "0"},
	} {
		fields["dryRun"] = true
		for name, payload := range c.answer(mutation, input(fields)) {
			c.want(payload, true, "dryRun")
			if len(at(payload, "changes").([]any)) == 0 || c.engine.objects.Latest().Revision() != 1 {
				t.Errorf("%s: %v", name, payload)
			}
		}
	}
}

// TestTicketsAreSaidNotToBeBuilt has one finding for every dry run and for an
// apply that names a ticket, as clients know it.
func TestTicketsAreSaidNotToBeBuilt(t *testing.T) {
	c := newConfigured(t, nil)
	c.apply(route("shop", "kept", "x"))
	const (
		deleting    = `mutation($input:DeleteInput!){delete(input:$input){findings{code}}}`
		rollingBack = `mutation($input:RollbackInput!){rollback(input:$input){findings{code}}}`
	)
	kept := []any{map[string]any{"group": "networking.istio.io", "kind": "VirtualService", "namespace": "shop", "name": "kept"}}
	manifests := route("shop", "a", "x")
	for _, of := range []struct {
		query, name string
		fields      map[string]any
		want        int
	}{
		{applying, "apply", map[string]any{"manifests": manifests, "dryRun": true}, 1},
		{applying, "apply", map[string]any{"manifests": manifests, "dryRun": true, "ticket": "t"}, 1},
		{applying, "apply", map[string]any{"manifests": manifests, "ticket": "t"}, 1},
		{applying, "apply", map[string]any{"manifests": manifests}, 0},
		{deleting, "delete", map[string]any{"objects": kept, "dryRun": true}, 1},
		{rollingBack, "rollback", map[string]any{"to": "1", "dryRun": true}, 1},
		{deleting, "delete", map[string]any{"objects": kept}, 0},
	} {
		found := 0
		for _, f := range at(c.answer(of.query, input(of.fields)), of.name, "findings").([]any) {
			if at(f, "code") == "NOT_BUILT" {
				found++
			}
		}
		if found != of.want {
			t.Errorf("%s with %v has %d, want %d", of.query, of.fields, found, of.want)
		}
	}
}

func TestStoreThatDoesNotAnswerIsUnavailable(t *testing.T) {
	c := newConfigured(t, nil)
	c.apply(route("shop", "a", "x"))
	c.engine.store.Fail(errors.New("dial tcp 192.0.2.1: token=hunter2"))
	for _, query := range []string{
		`mutation{delete(input:{objects:[{group:"networking.istio.io",kind:"VirtualService",namespace:"shop",name:"a"}]}){revision}}`,
		`mutation{renewWorkload(input:{namespace:"shop",name:"a"}){registration{expiresAt}}}`,
		`mutation{releaseWorkload(input:{namespace:"shop",name:"a"}){object{name}}}`,
		"{history{nodes{revision}}}", `{configObject(group:"networking.istio.io",kind:"VirtualService",namespace:"shop",name:"a",at:"1"){name}}`,
	} {
		if _, errs := c.ask(query, nil); !strings.Contains(errs, `"UNAVAILABLE"`) || strings.Contains(errs, "hunter2") {
			t.Errorf("%s gets %s", query, errs)
		}
	}
	c.want(c.answer(`{configObjects(filter:{name:"a"}){nodes{name}}}`, nil), "a", "configObjects", "nodes", 0, "name")
}

func TestHubWithoutConfigurationIsUnavailable(t *testing.T) {
	h := newHub(t)
	for _, query := range []string{
		`mutation{apply(input:{manifests:"a"}){revision}}`, `mutation{delete(input:{objects:[]}){revision}}`,
		`mutation{rollback(input:{to:"1"}){revision}}`,
		`mutation{registerWorkload(input:{namespace:"a",name:"a",address:"10.0.0.1"}){registration{expiresAt}}}`,
		"{configObjects{totalCount}}", "{configSources{name}}", "{history{totalCount}}", `{configObject(group:"a",kind:"b",name:"c"){name}}`,
	} {
		if _, errs := h.ask(query, nil); !strings.Contains(errs, `"UNAVAILABLE"`) {
			t.Errorf("%s gets %s", query, errs)
		}
	}
	h.want(h.answer("{kinds{kind}}", nil), []any{}, "kinds")
}

func TestWorkloadsAreRegisteredRenewedAndReleased(t *testing.T) {
	c := newConfigured(t, nil)
	const register = `mutation($input:RegisterWorkloadInput!){registerWorkload(input:$input){registration{object{group kind namespace name} expiresAt} userErrors{code field message}}}`
	const renew,
		release = `mutation{renewWorkload(input:{namespace:"shop",name:"vm-1"}){registration{object{name}} userErrors{code object{name}}}}`,
		`mutation{releaseWorkload(input:{namespace:"shop",name:"vm-1"}){object{name} userErrors{code}}}`
	c.want(c.answer(renew, nil), "NOT_FOUND", "renewWorkload", "userErrors", 0, "code")
	full := map[string]any{
		"namespace": "shop", "name": "vm-1", "address": "192.0.2.7", "ports": []any{map[string]any{"name": "http", "number": 8080}},
		"labels": []any{map[string]any{"key": "app", "value": "vm"}}, "networkID": "n1", "locality": map[string]any{"region": "r1", "zone": "z1"},
		"weight": 3, "serviceAccount": "vm", "ttl": "30s",
	}
	data := c.answer(register, input(full))
	c.want(data, "2026-11-21T12:00:30.000Z", "registerWorkload", "registration", "expiresAt")
	const manifest = `{"apiVersion":"networking.istio.io/v1","kind":"WorkloadEntry","metadata":{"labels":{"app":"vm"},"name":"vm-1","namespace":"shop"},` +
		`"spec":{"address":"192.0.2.7","labels":{"app":"vm"},"locality":"r1/z1","network":"n1","ports":{"http":8080},"serviceAccount":"vm","weight":3}}`
	if got := string(c.engine.registered); got != manifest || c.engine.ttl != 30*time.Second {
		t.Errorf("registered is %s for %v", got, c.engine.ttl)
	}
	c.want(c.answer(renew, nil), "vm-1", "renewWorkload", "registration", "object", "name")
	c.want(c.answer(release, nil), "vm-1", "releaseWorkload", "object", "name")
	c.want(c.answer(release, nil), []any{}, "releaseWorkload", "userErrors")
	c.want(c.answer(renew, nil), nil, "renewWorkload", "registration")
	for field, change := range map[string]map[string]any{
		"ttl": {"ttl": "1s"}, "spec.address": {"address": "BAD"}, "locality.region": {"locality": map[string]any{"zone": "z1"}},
		"locality.zone": {"locality": map[string]any{"region": "r", "zone": "a/b"}},
		"namespace":     {"namespace": ""},
		"labels[1].key": {"labels": []any{map[string]any{"key": "a", "value": "1"}, map[string]any{"key": "a", "value": "2"}}},
		"ports[1].name": {"ports": []any{map[string]any{"name": "a", "number": 1}, map[string]any{"name": "a", "number": 2}}},
	} {
		fields := map[string]any{"namespace": "shop", "name": "vm-2", "address": "192.0.2.8"}
		for name, value := range change {
			fields[name] = value
		}
		c.want(c.answer(register, input(fields)), field, "registerWorkload", "userErrors", 0, "field")
	}
}

func TestTheAuthorIsTheCaller(t *testing.T) {
	c := newConfigured(t, func(o *graph.Options) { o.Config.Author = func(context.Context) string { return "CN=ops" } })
	c.apply(route("shop", "a", "x"))
	c.want(c.answer("{history{nodes{author}}}", nil), "CN=ops", "history", "nodes", 0, "author")
}
