package schema

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
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
	other := runtime.DeepCopyJSON(benchObject)
	other["spec"].(map[string]any)["hosts"] = []any{"other"}
	benchmarkApply(b, benchObject, other)
}

func BenchmarkApplyUnchanged(b *testing.B) { benchmarkApply(b, benchObject) }

// benchmarkApply applies the objects in turn.
func benchmarkApply(b *testing.B, wanted ...map[string]any) {
	set := load(b)
	o := ApplyOptions{Manager: "bench", Now: time.Unix(1, 0)}
	live, err := set.Apply(nil, benchObject, o)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		live, err = set.Apply(live.Object, wanted[(i+1)%len(wanted)], o)
		if err != nil || live.Object == nil {
			b.Fatal(live, err)
		}
	}
}
