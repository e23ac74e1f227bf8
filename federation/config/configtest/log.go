package configtest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
)

func refused(t *testing.T, s Store) {
	huge := Object("huge", strings.Repeat("x", 1<<20))
	other := Object("a", 1)
	other.Key = Key("b")
	broken := Object("c", 1)
	broken.Manifest = broken.Manifest[:len(broken.Manifest)-1]
	nameless := Object("d", 1)
	nameless.Key = federation.ObjectKey{}
	many := make([]*config.Object, config.MaxManifests>>19+1) // all of one text, which is not copied
	half := Object("half", strings.Repeat("x", 1<<19))
	for i := range many {
		one := *half
		one.Key = Key(fmt.Sprint(i))
		many[i] = &one
	}
	mismatch := Set(0, Object("a", 1))
	mismatch.Changes[0].Key = Key("z")
	for _, c := range []struct {
		limit  string
		commit config.Commit
	}{
		{"empty commit", config.Commit{}},
		{"object size", Set(0, Object("a", 1), huge)},
		{"commit size", Set(0, many...)},
		{"name length", Set(0, Object("a", 1), Object(strings.Repeat("n", 1025), 1))},
		{"invalid object", Set(0, Object("a", 1), other)},
		{"invalid object", Set(0, broken)},
		{"invalid object", Set(0, nameless)},
		{"invalid object", mismatch},
		{"duplicate object", Set(0, Object("a", 1), Object("a", 2))},
		{"note size", config.Commit{Changes: Set(0, Object("a", 1)).Changes, Note: config.Note{Message: strings.Repeat("x", 1<<20)}}},
		{"secret size", config.Commit{
			Changes: Set(0, Object("a", 1)).Changes,
			Secrets: []config.Secret{{Of: Key("a"), Sealed: make([]byte, 1<<20)}},
		}},
		{"duplicate secret", config.Commit{Changes: Set(0, Object("a", 1)).Changes, Secrets: []config.Secret{{Of: Key("a")}, {Of: Key("a")}}}},
		{"secrets", config.Commit{Changes: Set(0, Object("a", 1)).Changes, Secrets: make([]config.Secret, config.MaxSecrets+1)}},
	} {
		if _, err := s.Commit(t.Context(), c.commit); limitOf(err) != c.limit {
			t.Errorf("%s: the error is %v", c.limit, err)
		}
	}
	if objects, err := s.At(t.Context(), 0); err != nil || len(objects) != 0 {
		t.Errorf("there are %d objects, %v", len(objects), err)
	}
	large := Object("large", strings.Repeat("x", 1<<20-1000))
	revision := Must(t, s, Set(0, large))
	objects, err := s.At(t.Context(), revision)
	if err != nil || len(objects) != 1 || !bytes.Equal(objects[0].Manifest, large.Manifest) {
		t.Errorf("an object of nearly 1 MiB is not kept as it is: %v", err)
	}
}

func records(t *testing.T, s Store) {
	when := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	c := Set(0, Object("a", 1), Object("b", 1))
	c.Note = config.Note{Author: "ann", Time: when, Message: "first", Manager: "cli", Ticket: "OPS-1", IdempotencyKey: "k1"}
	first := Must(t, s, c)
	c = Set(first, Object("a", 2))
	c.Changes = append(c.Changes, config.Change{Key: Key("b")})
	second := Must(t, s, c)
	third := Must(t, s, Set(second, Object("c", 3)))
	all, err := s.Records(t.Context(), 0, 10)
	if err != nil || len(all) != 3 || all[0].Revision != third || all[2].Revision != first {
		t.Fatalf("the records are %+v, %v", all, err)
	}
	oldest := all[2]
	oldest.Time = oldest.Time.UTC()
	want := config.Note{Author: "ann", Time: when, Message: "first", Manager: "cli", Ticket: "OPS-1", IdempotencyKey: "k1"}
	if oldest.Note != want || len(oldest.Changes) != 2 || oldest.Changes[0].Action != config.Created ||
		Value[int](oldest.Changes[0].Object) != 1 {
		t.Errorf("the first record is %+v", oldest)
	}
	got := all[1].Changes
	if len(got) != 2 || got[0].Action != config.Updated || got[0].Object.Revision != second ||
		got[1].Action != config.Deleted || got[1].Object != nil || got[1].Key != Key("b") {
		t.Errorf("the second record has %+v", got)
	}
	if all[1].Time.IsZero() {
		t.Error("a record without a time of its own has none")
	}
	page, err := s.Records(t.Context(), third, 1)
	if err != nil || len(page) != 1 || page[0].Revision != second {
		t.Errorf("the page below %d is %+v, %v", third, page, err)
	}
	page, err = s.Records(t.Context(), first, 5)
	if err != nil || len(page) != 0 {
		t.Errorf("below the first record there are %+v, %v", page, err)
	}
}

func history(t *testing.T, s Store) {
	base := Must(t, s, Set(0, Object("first", 1), Object("a", 1)))
	base = Must(t, s, Set(base, Object("a", 2), Object("first", 1))) // first is unchanged
	base = Must(t, s, Gone(base, "a"))
	Must(t, s, Set(base, Object("a", 3)))
	for name, want := range map[string]string{
		"first": "1 CREATE ann set",
		"a":     "4 CREATE ann set, 3 DELETE bob , 2 UPDATE ann set, 1 CREATE ann set", "never": "",
	} {
		found, err := s.History(t.Context(), Key(name))
		if got := Steps(found); err != nil || got != want || found.Compacted {
			t.Errorf("of %s it is %q, %v; want %q", name, got, err, want)
		}
		for _, step := range found.Steps {
			if step.Time.IsZero() {
				t.Errorf("a step of %s has no time", name)
			}
		}
	}
}

// Steps writes a history: revision, action, author and message of each step.
func Steps(h config.ObjectHistory) string {
	texts := make([]string, len(h.Steps))
	for i, s := range h.Steps {
		texts[i] = fmt.Sprintf("%d %s %s %s", s.Revision, s.Action, s.Author, s.Message)
	}
	return strings.Join(texts, ", ")
}

func past(t *testing.T, s Store) {
	base := int64(0)
	for i := range 12 {
		c := Set(base, Object("counter", i), Object(fmt.Sprintf("o-%d", i), i))
		if i >= 3 {
			c.Changes = append(c.Changes, config.Change{Key: Key(fmt.Sprintf("o-%d", i-3))})
		}
		base = Must(t, s, c)
	}
	for revision := int64(0); revision <= base; revision++ {
		objects, err := s.At(t.Context(), revision)
		want := int(min(revision, 3)) + 1
		if revision == 0 {
			want = 0
		}
		if err != nil || len(objects) != want {
			t.Fatalf("at %d there are %d objects, %v; want %d", revision, len(objects), err, want)
		}
		for i := range objects {
			if o := &objects[i]; o.Key == Key("counter") && (int64(Value[int](o)) != revision-1 || o.Revision != revision) {
				t.Errorf("at %d the counter is %d of %d", revision, Value[int](o), o.Revision)
			}
		}
	}
	for _, revision := range []int64{-1, base + 1} {
		if _, err := s.At(t.Context(), revision); !errors.Is(err, config.ErrUnknownRevision) {
			t.Errorf("at %d the error is %v", revision, err)
		}
	}
}

func once(t *testing.T, s Store) {
	c := Set(0, Object("a", 1))
	c.IdempotencyKey = "the key/of\x00ann"
	first := Must(t, s, c)
	second := Must(t, s, Set(first, Object("a", 2)))
	_, err := s.Commit(t.Context(), c)
	var repeated *config.Repeated
	if !errors.As(err, &repeated) || repeated.Revision != first {
		t.Errorf("the same commit again gives %v, want that it became revision %d", err, first)
	}
	if objects, err := s.At(t.Context(), second); err != nil || Value[int](&objects[0]) != 2 {
		t.Errorf("the same commit again changed something: %v", err)
	}
	found, err := s.Find(t.Context(), c.IdempotencyKey)
	if err != nil || found == nil || found.Revision != first || found.IdempotencyKey != c.IdempotencyKey {
		t.Errorf("found %+v, %v", found, err)
	}
	for _, key := range []string{"", "another"} {
		found, err = s.Find(t.Context(), key)
		if err != nil || found != nil {
			t.Errorf("with key %q found %+v, %v", key, found, err)
		}
	}
}
