package crd

import (
	"encoding/json"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/internal/kube/listwatch"
)

var routes = federation.Kind{Group: "networking.istio.io", Name: "VirtualService"}

func costSource(t testing.TB) *Source {
	t.Helper()
	set, err := schema.Load(kind.Expressions)
	if err != nil {
		t.Fatal(err)
	}
	return New(Options{Kinds: set.Kinds(), Schema: kind.Schema{Set: set, Newer: true}})
}

// custom is the n-th VirtualService as an API server sends it.
func custom(n, generation int) map[string]any {
	return map[string]any{
		"apiVersion": "networking.istio.io/v1", "kind": "VirtualService",
		"metadata": map[string]any{
			"name": fmt.Sprintf("route-%05d", n), "namespace": "shop", "uid": fmt.Sprint("uid-", n), "resourceVersion": fmt.Sprint(generation),
			"generation":        int64(1),
			"creationTimestamp": "2026-01-01T00:00:00Z", "labels": map[string]any{"app": "web"},
			"managedFields": []any{map[string]any{
				"manager": "kubectl", "operation": "Apply", "apiVersion": "networking.istio.io/v1", "time": "2026-01-01T00:00:00Z",
				"fieldsType": "FieldsV1",
				"fieldsV1":   map[string]any{"f:spec": map[string]any{"f:hosts": map[string]any{}, "f:http": map[string]any{}}},
			}},
		},
		"spec": map[string]any{
			"hosts": []any{fmt.Sprintf("web-%d.shop.svc.cluster.local", n)},
			"http": []any{map[string]any{
				"match":   []any{map[string]any{"uri": map[string]any{"prefix": fmt.Sprintf("/v%d", generation)}}},
				"timeout": "5s", "retries": map[string]any{"attempts": int64(2), "perTryTimeout": "1s"},
				"route": []any{
					map[string]any{"destination": map[string]any{"host": "a.shop.svc.cluster.local"}, "weight": int64(90)},
					map[string]any{"destination": map[string]any{"host": "b.shop.svc.cluster.local"}, "weight": int64(10)},
				},
			}},
		},
	}
}

// filled is a sink whose place has so many objects, which were given.
func filled(t testing.TB, n int) *placeSink {
	t.Helper()
	s := costSource(t)
	c := newCluster("c1")
	c.identity, c.complete, c.want = "uid", true, &selection{namespaces: []string{""}, kinds: []schema.Kind{s.kinds[routes]}}
	s.clusters["c1"], s.order = c, []*cluster{c}
	f := &clusterReader{of: s, id: "c1", turn: 1, budget: listwatch.NewBudget(federation.Limits{}, nil)}
	to := &placeSink{by: f, to: s, place: place{kind: routes}, share: f.budget.Share()}
	items := make([]*item, n)
	for i := range items {
		items[i] = s.item(s.kinds[routes], &unstructured.Unstructured{Object: custom(i, 1)})
	}
	to.Listed(t.Context(), items, 1)
	if len(s.take()) != n {
		t.Fatal("the objects are not given")
	}
	return to
}

// TestChangeCostsWhatItAffects: what a change of one object allocates does not depend on
// how many there are.
func TestChangeCostsWhatItAffects(t *testing.T) {
	cost := func(n int) float64 {
		to, generation := filled(t, n), 1
		return testing.AllocsPerRun(200, func() {
			generation++
			to.Set(t.Context(), to.to.item(to.to.kinds[routes], &unstructured.Unstructured{Object: custom(7, generation)}))
			if events := to.to.take(); len(events) != 1 {
				t.Fatalf("there are %d events", len(events))
			}
		})
	}
	few, many := cost(1_000), cost(10_000)
	t.Logf("%v allocations with 1,000 objects, %v with 10,000", few, many)
	if many > few*1.05 {
		t.Errorf("a change allocates %v with 10,000 objects, %v with 1,000", many, few)
	}
}

// TestListedAgainIsNotReadAgain: an object of the same version is the one that was read.
func TestListedAgainIsNotReadAgain(t *testing.T) {
	to := filled(t, 3)
	in := &unstructured.Unstructured{Object: custom(1, 1)}
	before := to.to.clusters["c1"].tables[to.place].items[listwatch.Key{Namespace: "shop", Name: "route-00001"}]
	if got := to.by.reread(to.place, served{kind: to.to.kinds[routes]}, in); got != before {
		t.Error("an object of the same version is read again")
	}
	in.SetUID(types.UID("other"))
	if got := to.by.reread(to.place, served{kind: to.to.kinds[routes]}, in); got == before {
		t.Error("another object of that name is taken for the one before")
	}
}

// BenchmarkList compares what client-go decodes with decoding and validating it for the source.
func BenchmarkList(b *testing.B) {
	const n, page = 10_000, 500
	var pages [][]byte
	for at := 0; at < n; at += page {
		var items []any
		for i := range page {
			items = append(items, custom(at+i, 1))
		}
		text, err := json.Marshal(map[string]any{
			"apiVersion": "networking.istio.io/v1", "kind": "VirtualServiceList",
			"metadata": map[string]any{"resourceVersion": "1"}, "items": items,
		})
		if err != nil {
			b.Fatal(err)
		}
		pages = append(pages, text)
	}
	s := costSource(b)
	each := func(b *testing.B, do func(*unstructured.Unstructured)) {
		for b.Loop() {
			for _, text := range pages {
				decoded, _, err := unstructured.UnstructuredJSONScheme.Decode(text, nil, nil)
				if err != nil {
					b.Fatal(err)
				}
				list := decoded.(*unstructured.UnstructuredList)
				for i := range list.Items {
					do(&list.Items[i])
				}
			}
		}
	}
	b.Run("decode", func(b *testing.B) { each(b, func(*unstructured.Unstructured) {}) })
	b.Run("read", func(b *testing.B) {
		each(b, func(in *unstructured.Unstructured) {
			if i := s.item(s.kinds[routes], in); i.object == nil {
				b.Fatal(i.problems)
			}
		})
	})
}
