package configtest

import (
	"errors"
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

// renewal keeps one registration for longer than its time, and lets it go then. On a machine that
// stops for longer than a lease, it begins again.
func renewal(t *testing.T, s Store) {
	const ttl = 6 * time.Second
	heard, _ := Listen(t, s)
	heard.WaitRevision(t, 0)
	var first, asked time.Time
	begin := func() {
		var err error
		asked = time.Now()
		first, err = s.Register(t.Context(), *Object("kept", 1), ttl)
		if err != nil {
			t.Fatal(err)
		}
	}
	begin()
	ends, again := 0, time.NewTicker(ttl/12)
	defer again.Stop()
	for last := first; time.Now().Before(first.Add(time.Second)) || !last.After(first); <-again.C {
		now := time.Now()
		expires, err := s.Renew(t.Context(), Key("kept"))
		switch {
		case err == nil:
			asked, last = now, expires
		case errors.Is(err, config.ErrNoLease) && time.Since(asked) >= ttl:
			begin()
			ends, last = ends+1, first
		default:
			t.Fatalf("%v after it was renewed, renewing gives %v", time.Since(asked), err)
		}
	}
	seen := heard.Wait(t, "the end without renewal", func(s Seen) bool { return lacks("kept")(s) && timesGone(s, "kept") > ends })
	if n := timesGone(seen, "kept"); n > ends+1 {
		t.Errorf("a registration that is renewed was gone %d times", n-ends-1)
	}
}

// timesGone is how often the object was given as gone.
func timesGone(s Seen, name string) (n int) {
	for _, u := range s.Updates {
		for _, e := range u.Events {
			if e.New == nil && e.Old.Key == Key(name) {
				n++
			}
		}
	}
	return n
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
