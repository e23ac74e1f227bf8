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
		w := newFixture()
		w.state = config.NewState(config.Options{
			Hub: "hub", Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Poison: func(key federation.ObjectKey) {
				if key.Name == "poison" {
					panic("a bug")
				}
			},
		})
		w.take(nil)
		named := func(name string) string {
			return "apiVersion: " + kind.APIVersion() + "\nkind: " + kind.Name + "\nmetadata: {name: " + name + ", namespace: shop}"
		}
		w.apply(t, named("before"), named("poison"), named("after"),
			entry("a", `{hosts: [a.example.com], resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 10.0.0.1}]}`))
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

// TestR12PoisonDerivedService: where the hub panics over a service that objects define, the service stays as it was, each of
// these objects says so, and all other services go on. It heals when one of the objects changes.
func TestR12PoisonDerivedService(t *testing.T) {
	var log bytes.Buffer
	armed := false
	w := newFixture()
	w.state = config.NewState(config.Options{
		Hub: "hub", Logger: slog.New(slog.NewTextHandler(&log, nil)),
		PoisonService: func(key federation.ServiceKey) {
			if armed && key.Hostname == "poison.example.com" {
				panic("a bug")
			}
		},
	})
	w.take(nil)
	spec := func(host, address string) string {
		return `{hosts: [` + host + `], resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: ` + address + `}]}`
	}
	w.apply(t, entry("one", spec("poison.example.com", "10.0.0.1")))
	w.has(t, "poison.example.com", "10.0.0.1")
	armed = true
	w.apply(t, entry("two", spec("poison.example.com", "10.0.0.2")), entry("other", spec("other.example.com", "10.0.0.3")))
	w.has(t, "poison.example.com", "10.0.0.1")
	w.has(t, "other.example.com", "10.0.0.3")
	for _, name := range []string{"one", "two"} {
		said := "HUB_FAULT " + object(t, 1, entry(name, spec("poison.example.com", "10.0.0.1"))).Key.Title() + " "
		if !slices.Contains(w.problems(), said) {
			t.Errorf("no %q among %q", said, w.problems())
		}
	}
	if len(w.problems()) != 2 {
		t.Errorf("the problems are %q", w.problems())
	}
	for _, word := range []string{"Service shop/poison.example.com", "ServiceEntry shop/one, ServiceEntry shop/two", "quarantine_test.go"} {
		if !strings.Contains(log.String(), word) {
			t.Errorf("the log has no %q: %s", word, log.String())
		}
	}
	armed = false
	w.apply(t, entry("one", spec("poison.example.com", "10.0.0.4")))
	w.has(t, "poison.example.com", "10.0.0.4")
	if slices.ContainsFunc(w.problems(), func(p string) bool { return strings.HasPrefix(p, "HUB_FAULT") }) {
		t.Errorf("when it is healed, the problems are %q", w.problems())
	}
}
