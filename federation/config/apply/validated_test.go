package apply_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/federation/config/configtest"
	"isthmus.dev/isthmus/federation/config/configtest/memory"
)

// smuggled is a commit of an object that nobody validated.
func smuggled(t *testing.T, base int64, name, spec string) config.Commit {
	t.Helper()
	text, err := yaml.YAMLToJSON([]byte("apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: " + name +
		", namespace: shop}\nspec: " + spec))
	if err != nil {
		t.Fatal(err)
	}
	o := &config.Object{Key: routeKey(name), APIVersion: "networking.istio.io/v1", Manifest: json.RawMessage(text)}
	return config.Commit{Base: base, Changes: []config.Change{{Key: o.Key, Object: o}}}
}

const (
	goodSpec  = `{hosts: [a.example.com], http: [{route: [{destination: {host: a}}]}]}`
	otherSpec = `{hosts: [b.example.com], http: [{route: [{destination: {host: a}}]}]}`
	badSpec   = `{hosts: [a.example.com], http: [{rout: [{destination: {host: a}}]}]}`
)

// validated is a store that somebody else writes to, read with validation.
func validated(t *testing.T) (*memory.Store, *apply.Validated) {
	t.Helper()
	set, err := loaded()
	if err != nil {
		t.Fatal(err)
	}
	store := memory.New(routeKey("").Of())
	return store, apply.NewValidated(store, set, slog.New(slog.DiscardHandler))
}

func TestBE6ObjectsWrittenPastValidationAreQuarantined(t *testing.T) {
	store, source := validated(t)
	configtest.Must(t, store, smuggled(t, 0, "good", goodSpec))
	configtest.Must(t, store, smuggled(t, 1, "bad", badSpec))
	recorder, _ := configtest.Listen(t, source)
	seen := recorder.Wait(t, "the bad object to be named", func(s configtest.Seen) bool { return s.Codes() == "QUARANTINED" })
	p := seen.Problems[0]
	if len(seen.Objects) != 1 || p.Object != routeKey("bad").String() || p.Field != "spec.http[0].rout" ||
		!strings.Contains(p.Message, "is not used") {
		t.Fatalf("%d objects, %+v", len(seen.Objects), p)
	}
	before := seen.Objects[routeKey("good")]
	configtest.Must(t, store, smuggled(t, 2, "good", badSpec))
	seen = recorder.Wait(t, "both", func(s configtest.Seen) bool { return s.Codes() == "QUARANTINED QUARANTINED" })
	if seen.Objects[routeKey("good")] != before || !strings.Contains(seen.Problems[1].Message, "the last valid one stays") {
		t.Errorf("the last valid object does not stay: %+v", seen.Problems)
	}
	configtest.Must(t, store, smuggled(t, 3, "good", otherSpec))
	configtest.Must(t, store, smuggled(t, 4, "bad", goodSpec))
	seen = recorder.Wait(t, "no problem", func(s configtest.Seen) bool { return s.Codes() == "" && len(s.Objects) == 2 })
	if string(seen.Objects[routeKey("good")].Manifest) == string(before.Manifest) {
		t.Error("the repaired object is not given")
	}
	configtest.Must(t, store, smuggled(t, 5, "bad", badSpec))
	gone := smuggled(t, 6, "bad", badSpec)
	gone.Changes[0].Object = nil
	configtest.Must(t, store, gone)
	recorder.Wait(t, "the quarantined object to be gone", func(s configtest.Seen) bool { return s.Codes() == "" && len(s.Objects) == 1 })
}

func TestBE6TroubleOfTheStoreStaysBesideQuarantine(t *testing.T) {
	store, source := validated(t)
	configtest.Must(t, store, smuggled(t, 0, "bad", badSpec))
	recorder, _ := configtest.Listen(t, source)
	recorder.Wait(t, "the bad object to be named", func(s configtest.Seen) bool { return s.Codes() == "QUARANTINED" })
	store.Fail(context.DeadlineExceeded)
	recorder.Wait(t, "both troubles", func(s configtest.Seen) bool { return s.Codes() == "UNREACHABLE QUARANTINED" })
	store.Fail(nil)
	recorder.Wait(t, "one trouble", func(s configtest.Seen) bool { return s.Codes() == "QUARANTINED" })
}

// TestBE6WhatIsAppliedIsWhatIsRead: validation on read lets everything through
// that was applied, here and over another hub.
func TestBE6WhatIsAppliedIsWhatIsRead(t *testing.T) {
	w := newFixture(t)
	w.must(route("web", "v1") + external("api.example.com"))
	w.must(route("web", "v2"), manager("other"), force)
	set, err := loaded()
	if err != nil {
		t.Fatal(err)
	}
	recorder, _ := configtest.Listen(t, apply.NewValidated(w.store, set, slog.New(slog.DiscardHandler)))
	seen := recorder.WaitRevision(t, w.views.Latest().Revision())
	if len(seen.Problems) > 0 || len(seen.Objects) < 2 || len(w.views.Latest().Sources[0].Trouble) > 0 {
		t.Errorf("%d objects, %v", len(seen.Objects), seen.Problems)
	}
}

// TestR46TheStartSaysHowManyObjectsAreStored: the hub's own objects, such as automatic
// VIPs, are not among them.
func TestR46TheStartSaysHowManyObjectsAreStored(t *testing.T) {
	w := newFixture(t)
	w.must(route("web", "v1") + external("api.example.com") + external("pay.example.com"))
	set, err := loaded()
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	recorder, _ := configtest.Listen(t, apply.NewValidated(w.store, set, slog.New(slog.NewTextHandler(&log, nil))))
	seen := recorder.WaitRevision(t, w.views.Latest().Revision())
	if said := log.String(); len(seen.Objects) != 5 || !strings.Contains(said, "validated\" objects=3 ") {
		t.Errorf("of 3 objects and 2 VIPs the store gives %d, and the log says: %s", len(seen.Objects), said)
	}
}
