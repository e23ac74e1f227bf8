package configtest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
)

func has(name string) func(Seen) bool {
	return func(s Seen) bool { return s.Objects[Key(name)] != nil }
}

func lacks(name string) func(Seen) bool {
	return func(s Seen) bool { return s.Objects[Key(name)] == nil }
}

func leases(t *testing.T, s Store) {
	heard, _ := Listen(t, s)
	heard.WaitRevision(t, 0)
	for _, name := range []string{"short", "long", "released"} {
		ttl := time.Hour
		if name == "short" {
			ttl = time.Second
		}
		if _, err := s.Register(t.Context(), *Object(name, 1), ttl); err != nil {
			t.Fatal(err)
		}
	}
	seen := heard.Wait(t, "what is leased", func(s Seen) bool { return has("long")(s) && has("released")(s) })
	if until := time.Until(seen.Objects[Key("long")].Expires); until < 50*time.Minute || until > 70*time.Minute {
		t.Errorf("it expires in %v", until)
	}
	heard.Wait(t, "the end of a lease", lacks("short"))
	if _, err := s.Renew(t.Context(), Key("short")); !errors.Is(err, config.ErrNoLease) {
		t.Errorf("renewing what is gone gives %v", err)
	}
	if err := s.Release(t.Context(), Key("released")); err != nil {
		t.Error(err)
	}
	seen = heard.Wait(t, "the release", lacks("released"))
	if !has("long")(seen) {
		t.Error("what is leased for long is gone")
	}
	if err := s.Release(t.Context(), Key("released")); err != nil {
		t.Errorf("releasing what is gone gives %v", err)
	}
	if _, err := s.Register(t.Context(), *Object("long", 2), time.Hour); err != nil {
		t.Fatal(err)
	}
	heard.Wait(t, "its replacement", func(s Seen) bool { return has("long")(s) && Value[int](s.Objects[Key("long")]) == 2 })
	bad := *Object("a", 1)
	bad.Key = federation.ObjectKey{Kind: "X", Name: "b"}
	if _, err := s.Register(t.Context(), bad, time.Hour); limitOf(err) != "invalid object" {
		t.Errorf("registering an object of another key gives %v", err)
	}
	if _, err := s.Register(t.Context(), *Object("a", 1), 0); limitOf(err) == "" {
		t.Errorf("registering for no time gives %v", err)
	}
}

// renewal keeps one registration for longer than its time, and lets another go:
// its end is the clock.
func renewal(t *testing.T, s Store) {
	heard, _ := Listen(t, s)
	heard.WaitRevision(t, 0)
	first, err := s.Register(t.Context(), *Object("kept", 1), 6*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; time.Now().Before(first.Add(time.Second)); i++ {
		name := fmt.Sprint("clock-", i)
		if _, err := s.Register(t.Context(), *Object(name, 1), time.Second); err != nil {
			t.Fatal(err)
		}
		heard.Wait(t, name, has(name))
		seen := heard.Wait(t, "the end of "+name, lacks(name))
		if !has("kept")(seen) {
			t.Fatal("a registration that is renewed is gone")
		}
		if _, err := s.Renew(t.Context(), Key("kept")); err != nil {
			t.Fatal(err)
		}
	}
	if expires, err := s.Renew(t.Context(), Key("kept")); err != nil || !expires.After(first) {
		t.Errorf("renewed until %v after %v, %v", expires, first, err)
	}
	heard.Wait(t, "the end without renewal", lacks("kept"))
}

func hidden(t *testing.T, s Store) {
	heard, _ := Listen(t, s)
	heard.WaitRevision(t, 0)
	if _, err := s.Register(t.Context(), *Object("a", "leased"), time.Hour); err != nil {
		t.Fatal(err)
	}
	heard.Wait(t, "the leased object", has("a"))
	revision := Must(t, s, Set(0, Object("a", "committed")))
	heard.Wait(t, "the committed object", func(s Seen) bool {
		return Value[string](s.Objects[Key("a")]) == "committed" && s.Codes() == "SHADOWED"
	})
	if objects, err := s.At(t.Context(), revision); err != nil || len(objects) != 1 {
		t.Errorf("the history has %d objects, %v", len(objects), err)
	}
	Must(t, s, Gone(revision, "a"))
	heard.Wait(t, "the leased object again", func(s Seen) bool {
		return Value[string](s.Objects[Key("a")]) == "leased" && s.Codes() == ""
	})
}
