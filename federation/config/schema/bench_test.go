package schema

import (
	"testing"
	"time"
)

var benchObject = map[string]any{
	"apiVersion": "networking.istio.io/v1", "kind": "VirtualService",
	"metadata": map[string]any{"name": "reviews", "namespace": "default", "labels": map[string]any{"app": "reviews"}},
	"spec": map[string]any{
		"hosts": []any{"reviews"},
		"http": []any{map[string]any{
			"match": []any{map[string]any{"headers": map[string]any{"end-user": map[string]any{"exact": "jason"}}}},
			"route": []any{map[string]any{"destination": map[string]any{"host": "reviews", "subset": "v2"}, "weight": int64(100)}},
		}},
	},
}

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		load(b)
	}
}

func BenchmarkFirstAdmit(b *testing.B) {
	for b.Loop() {
		if _, problems := load(b).Admit(benchObject, nil); len(problems) > 0 {
			b.Fatal(problems)
		}
	}
}

func BenchmarkAdmit(b *testing.B) {
	set := load(b)
	set.Admit(benchObject, nil)
	b.ReportAllocs()
	for b.Loop() {
		if _, problems := set.Admit(benchObject, nil); len(problems) > 0 {
			b.Fatal(problems)
		}
	}
}

func BenchmarkApply(b *testing.B) {
	set := load(b)
	o := ApplyOptions{Manager: "bench", Now: time.Unix(1, 0)}
	first, err := set.Apply(nil, benchObject, o)
	if err != nil || first.Object == nil {
		b.Fatal(first, err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if r, err := set.Apply(first.Object, benchObject, o); err != nil || r.Object == nil {
			b.Fatal(r, err)
		}
	}
}
