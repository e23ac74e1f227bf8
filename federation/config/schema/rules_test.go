package schema

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"pgregory.net/rapid"
)

// The fast check of rules must agree with the library's: for objects of every kind, bent in
// every way, as far as their types are right.
func TestPropertyRulesHoldAsTheLibrarySays(t *testing.T) {
	set := load(t)
	objects := corpusObjects(t, set)
	hold, broken := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		object, v, c := drawObject(t, set, objects)
		for range rapid.IntRange(0, 3).Draw(t, "bends") {
			object["spec"] = bend(t, object["spec"])
		}
		slow, err := v.rules()
		if err != nil {
			t.Fatal(err)
		}
		if slow == nil || !c.whole().conforms(object) {
			return
		}
		want, _ := slow.Validate(context.Background(), nil, c.structural, object, nil, celconfig.RuntimeCELCostBudget)
		if got := v.quickRules().hold(object, nil); got != (len(want) == 0) {
			t.Fatalf("the rules hold: %v, the library says %v of %v", got, want, object)
		}
		if len(want) == 0 {
			hold++
		} else {
			broken++
		}
	})
	bothWays(t, hold, broken)
}

// A rule that compares with what was before is left to the library.
func TestRulesThatCompareAreTheLibrarys(t *testing.T) {
	object := map[string]any{
		"apiVersion": "isthmus.dev/v1", "kind": "Cluster", "metadata": map[string]any{"name": "west"},
		"spec": map[string]any{"provider": "kubernetes"},
	}
	v, problem := load(t).versionOf(object)
	if problem != nil {
		t.Fatal(problem)
	}
	if !v.quickRules().hold(object, nil) {
		t.Error("no rule is broken")
	}
	if v.quickRules().hold(object, object) {
		t.Error("a rule that compares was not evaluated")
	}
}

// R63: reading a member in a rule does not make the schemas of all members again. It was
// 380 kB for an object like this.
func TestR63AdmittingIsFrugal(t *testing.T) {
	set := load(t)
	object := partner()
	if _, problems := set.Admit(object, nil); len(problems) > 0 {
		t.Fatal(problems)
	}
	const most = 30_000 * allowance
	if got := bytesPerRun(func() { set.Take(runtime.DeepCopyJSON(object), nil) }); got > most {
		t.Errorf("admitting an object takes %d bytes, at most %d are expected", got, most)
	}
}
