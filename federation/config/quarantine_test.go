package config_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/schema"
)

// TestR12PoisonObjectOfEachKind: an object over which the hub panics is set aside alone, whatever its kind: its status says so, all
// others of its kind and of others have their effect, and it heals when it is deleted.
func TestR12PoisonObjectOfEachKind(t *testing.T) {
	set, err := schema.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range set.Kinds() {
		var log bytes.Buffer
		w := newWorld()
		w.state = config.NewState(config.Options{Hub: "hub", Logger: slog.New(slog.NewTextHandler(&log, nil)), Poison: func(key federation.ObjectKey) {
			if key.Name == "poison" {
				panic("a bug")
			}
		}})
		w.take(nil)
		named := func(name string) string {
			return "apiVersion: " + kind.APIVersion() + "\nkind: " + kind.Name + "\nmetadata: {name: " + name + ", namespace: shop}"
		}
		w.apply(t, named("before"), named("poison"), named("after"), entry("a", `{hosts: [a.example.com], resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 10.0.0.1}]}`))
		for _, name := range []string{"before", "after"} {
			if _, ok := w.state.Decoded(object(t, 1, named(name)).Key); !ok {
				t.Errorf("%s %s is set aside: %v", kind.Kind, name, w.problems())
			}
		}
		w.has(t, "a.example.com", "10.0.0.1")
		poisoned := object(t, 1, named("poison"))
		_, decoded := w.state.Decoded(poisoned.Key)
		if said := "HUB_FAULT " + poisoned.Key.Title() + " "; decoded || !slices.Contains(w.problems(), said) {
			t.Errorf("%s: the problems are %q", kind.Kind, w.problems())
		}
		if !strings.Contains(log.String(), "quarantine_test.go") {
			t.Errorf("%s: the log does not have the stack: %s", kind.Kind, log.String())
		}
		w.take([]config.Event{{Old: poisoned}})
		if slices.ContainsFunc(w.problems(), func(p string) bool { return strings.HasPrefix(p, "HUB_FAULT") }) {
			t.Errorf("%s: without it, the problems are %q", kind.Kind, w.problems())
		}
	}
}
