package schema

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// object reads JSON as the room takes it.
func fromJSON(t testing.TB, text string) map[string]any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value map[string]any
	if err := decoder.Decode(&value); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return plainNumbers(value).(map[string]any)
}

func plainNumbers(value any) any {
	switch v := value.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	case []any:
		for i := range v {
			v[i] = plainNumbers(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = plainNumbers(v[name])
		}
	}
	return value
}

func virtualService(t testing.TB, metadata, spec string) map[string]any {
	t.Helper()
	return fromJSON(t, `{"apiVersion":"networking.istio.io/v1","kind":"VirtualService","metadata":{"name":"r","namespace":"shop"`+
		metadata+`},"spec":`+spec+`}`)
}

func apply(t *testing.T, set *Set, live, wanted map[string]any, o ApplyOptions) map[string]any {
	t.Helper()
	r, err := set.Apply(live, wanted, o)
	if err != nil || r.Object == nil {
		t.Fatalf("%v %v %v", err, r.Problems, r.Conflicts)
	}
	return r.Object
}

func TestApplySaysWhoseFieldsAreInConflict(t *testing.T) {
	set := load(t)
	live := apply(t, set, nil, virtualService(t, `,"labels":{"app.kubernetes.io/name":"a"}`, `{"hosts":["a"],"gateways":["mesh"]}`),
		ApplyOptions{Manager: "a", Now: noon})
	wanted := virtualService(t, `,"labels":{"app.kubernetes.io/name":"b"}`, `{"hosts":["b"],"gateways":["mesh"]}`)
	r, err := set.Apply(live, wanted, ApplyOptions{Manager: "b", Now: noon})
	if err != nil || r.Object != nil || len(r.Problems) > 0 {
		t.Fatalf("%v %v", r, err)
	}
	want := []FieldConflict{
		{".metadata.labels.app.kubernetes.io/name", "a", "a", "b"},
		{".spec.hosts", "a", []any{"a"}, []any{"b"}},
	}
	if diff := cmp.Diff(want, r.Conflicts, cmpopts.SortSlices(func(a, b FieldConflict) bool { return a.Field < b.Field })); diff != "" {
		t.Errorf("conflicts (-want +got):\n%s", diff)
	}
	forced := apply(t, set, live, wanted, ApplyOptions{Manager: "b", Force: true, Now: noon})
	if got := forced["spec"].(map[string]any)["hosts"]; !cmp.Equal(got, []any{"b"}) {
		t.Errorf("by force the hosts are %v", got)
	}
}

func TestApplyNamesItemsInConflict(t *testing.T) {
	set := load(t)
	entry := func(name string, number int) map[string]any {
		e := fromJSON(t, `{"apiVersion":"networking.istio.io/v1","kind":"ServiceEntry","metadata":{"name":"e","namespace":"shop"},
			"spec":{"hosts":["e.example.com"],"ports":[{"name":"x","number":1,"protocol":"TCP"}]}}`)
		port := e["spec"].(map[string]any)["ports"].([]any)[0].(map[string]any)
		port["name"], port["number"] = name, int64(number)
		return e
	}
	live := apply(t, set, nil, entry("http", 80), ApplyOptions{Manager: "a", Now: noon})
	live = apply(t, set, live, entry("tls", 443), ApplyOptions{Manager: "b", Now: noon})
	r, err := set.Apply(live, entry("http", 8080), ApplyOptions{Manager: "c", Now: noon})
	want := []FieldConflict{{`.spec.ports[name="http"].number`, "a", int64(80), int64(8080)}}
	if diff := cmp.Diff(want, r.Conflicts); diff != "" || err != nil {
		t.Errorf("conflicts (-want +got):\n%s%v", diff, err)
	}
}

func TestApplyKeepsTimesAndObjectsApart(t *testing.T) {
	set := load(t)
	first := virtualService(t, "", `{"hosts":["a"]}`)
	live := apply(t, set, nil, first, ApplyOptions{Manager: "a", Now: noon})
	before := fromJSON(t, toJSON(t, live))
	again := apply(t, set, live, first, ApplyOptions{Manager: "a", Now: noon.Add(time.Hour)})
	if diff := cmp.Diff(live, again); diff != "" {
		t.Errorf("an apply without a change gives (-before +after):\n%s", diff)
	}
	both := apply(t, set, live, virtualService(t, "", `{"exportTo":["."]}`), ApplyOptions{Manager: "b", Now: noon.Add(time.Hour)})
	if diff := cmp.Diff(before, live); diff != "" {
		t.Errorf("the stored object was changed (-before +after):\n%s", diff)
	}
	times := map[string]string{}
	for _, entry := range both["metadata"].(map[string]any)["managedFields"].([]any) {
		e := entry.(map[string]any)
		times[e["manager"].(string)] = e["time"].(string)
	}
	if diff := cmp.Diff(map[string]string{"a": "2026-05-04T12:00:00Z", "b": "2026-05-04T13:00:00Z"}, times); diff != "" {
		t.Errorf("times of the managers (-want +got):\n%s", diff)
	}
}

func toJSON(t *testing.T, object map[string]any) string {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestApplyTakesWhatWasReadBack(t *testing.T) {
	set := load(t)
	live := apply(t, set, nil, virtualService(t, "", `{"hosts":["a"]}`), ApplyOptions{Manager: "a", Now: noon})
	metadata := live["metadata"].(map[string]any)
	metadata["uid"], metadata["resourceVersion"], metadata["generation"] = "u1", "7", int64(3)
	metadata["creationTimestamp"] = "2026-01-01T00:00:00Z"
	live["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}
	back := fromJSON(t, toJSON(t, live))
	back["metadata"].(map[string]any)["uid"] = "another"
	back["status"] = map[string]any{"conditions": []any{}}
	if again := apply(t, set, live, back, ApplyOptions{Manager: "a", Now: noon}); !cmp.Equal(again, live) {
		t.Errorf("what was read and applied again differs (-live +again):\n%s", cmp.Diff(live, again))
	}
	fresh := apply(t, set, nil, back, ApplyOptions{Manager: "a", Now: noon})
	for _, name := range []string{"uid", "resourceVersion", "generation", "creationTimestamp"} {
		if value, ok := fresh["metadata"].(map[string]any)[name]; ok {
			t.Errorf("a new object took %s: %v from what was applied", name, value)
		}
	}
	if _, ok := fresh["status"]; ok {
		t.Error("a new object took a status from what was applied")
	}
}

func TestApplySaysEveryProblemAtOnce(t *testing.T) {
	wanted := virtualService(t, `,"lables":{"a":"b"}`, `{"hosts":"a","htpp":[],"http":[{"timeout":5}]}`)
	r, err := load(t).Apply(nil, wanted, ApplyOptions{Manager: "a", Now: noon})
	if err != nil || r.Object != nil {
		t.Fatal(r, err)
	}
	want := "# TYPE spec.hosts\n# TYPE spec.http[0].timeout\n# UNKNOWN_FIELD metadata.lables\n# UNKNOWN_FIELD spec.htpp\n"
	if diff := cmp.Diff(want, summary(r.Problems)); diff != "" {
		t.Errorf("problems (-want +got):\n%s%v", diff, r.Problems)
	}
}

func TestApplyToAStoredObjectSaysEveryProblemAtOnce(t *testing.T) {
	set, o := load(t), ApplyOptions{Manager: "a", Now: noon}
	live := apply(t, set, nil, virtualService(t, "", `{"hosts":["a"]}`), o)
	r, err := set.Apply(live, virtualService(t, "",
		`{"hosts":["a"],"htpp":[],"http":[{"timeout":"x","route":[{"destination":{"host":""}}]}]}`), o)
	if err != nil || r.Object != nil {
		t.Fatal(r, err)
	}
	want := "# INVALID spec.http[0].timeout\n# UNKNOWN_FIELD spec.htpp\n"
	if diff := cmp.Diff(want, summary(r.Problems)); diff != "" {
		t.Errorf("problems (-want +got):\n%s%v", diff, r.Problems)
	}
}

func TestApplyNeedsAManager(t *testing.T) {
	for _, name := range []string{"", strings.Repeat("x", 129), "a\nb"} {
		if _, err := load(t).Apply(nil, virtualService(t, "", "{}"), ApplyOptions{Manager: name, Now: noon}); err == nil {
			t.Errorf("the manager %q is taken", name)
		}
	}
}

func TestReplaceGivesBackAnOldState(t *testing.T) {
	set := load(t)
	one := apply(t, set, nil, virtualService(t, "", `{"hosts":["a"]}`), ApplyOptions{Manager: "a", Now: noon})
	two := apply(t, set, one, virtualService(t, "", `{"hosts":["a","b"],"exportTo":["*"]}`), ApplyOptions{Manager: "a", Now: noon})
	r, err := set.Replace(two, one, ApplyOptions{Manager: "rollback", Now: noon.Add(time.Hour)})
	if err != nil || r.Object == nil {
		t.Fatal(r, err)
	}
	if diff := cmp.Diff(one["spec"], r.Object["spec"]); diff != "" {
		t.Errorf("spec (-old +rolled back):\n%s", diff)
	}
	c, err := set.Apply(r.Object, virtualService(t, "", `{"hosts":["c"]}`), ApplyOptions{Manager: "a", Now: noon})
	if err != nil || len(c.Conflicts) != 1 || c.Conflicts[0].Manager != "rollback" {
		t.Errorf("the next apply of a: %v %v, want a conflict with rollback", c, err)
	}
	if r, err := set.Replace(two, virtualService(t, "", `{"hosts":[5]}`), ApplyOptions{Manager: "x", Now: noon}); err != nil ||
		len(r.Problems) == 0 {
		t.Errorf("a wrong object is taken: %v %v", r, err)
	}
}
