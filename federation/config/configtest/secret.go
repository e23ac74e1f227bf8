package configtest

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
)

// secrets: what is kept beside an object comes and goes with a commit, in one
// transaction, and is nowhere else.
func secrets(t *testing.T, s Store) {
	const sealed = "the sealed text"
	keep := func(base int64, value string) config.Commit {
		c := Set(base, Object("a", base))
		c.Secrets = []config.Secret{{Of: Key("a"), Sealed: []byte(value)}}
		return c
	}
	read := func() string {
		t.Helper()
		got, err := s.Secret(t.Context(), Key("a"))
		if err != nil {
			t.Fatal(err)
		}
		return string(got)
	}
	if got := read(); got != "" {
		t.Errorf("an empty store has the secret %q", got)
	}
	first := Must(t, s, keep(0, sealed))
	if got := read(); got != sealed {
		t.Errorf("the secret is %q", got)
	}
	if _, err := s.Commit(t.Context(), keep(first+5, "of a commit that is not taken")); err == nil || read() != sealed {
		t.Errorf("a commit that is not taken (%v) left the secret %q", err, read())
	}
	second := Must(t, s, Set(first, Object("a", "other")))
	if got := read(); got != sealed {
		t.Errorf("after a change of the object alone, the secret is %q", got)
	}
	replaced := Must(t, s, keep(second, "another"))
	if all, err := s.SecretsOf(t.Context()); err != nil || !slices.Equal(all, []federation.ObjectKey{Key("a")}) {
		t.Errorf("secrets are beside %v, %v", all, err)
	}
	nowhere(t, s, replaced, sealed)
	resealed(t, s)
	gone := Gone(replaced, "a")
	gone.Secrets = []config.Secret{{Of: Key("a")}}
	Must(t, s, gone)
	if all, err := s.SecretsOf(t.Context()); err != nil || len(all) != 0 || read() != "" {
		t.Errorf("after the object was deleted, secrets are beside %v, %v", all, err)
	}
}

// nowhere looks through what a store gives of its past and its present.
func nowhere(t *testing.T, s Store, revision int64, sealed string) {
	t.Helper()
	heard, stop := Listen(t, s)
	seen := heard.WaitRevision(t, revision)
	stop()
	records, err := s.Records(t.Context(), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := json.Marshal([]any{seen.Updates, records})
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(shown, []byte(sealed)) {
		t.Errorf("a secret is shown: %s", shown)
	}
}

// resealed: another encryption takes the place of the one that was read, and of
// no other.
func resealed(t *testing.T, s Store) {
	t.Helper()
	now := config.Secret{Of: Key("a"), Sealed: []byte("another")}
	fresh := config.Secret{Of: Key("a"), Sealed: []byte("another, resealed")}
	if done, err := s.Reseal(t.Context(), config.Secret{Of: Key("a"), Sealed: []byte("an old one")}, fresh); done || err != nil {
		t.Errorf("resealing what is not there any more: %v, %v", done, err)
	}
	if done, err := s.Reseal(t.Context(), now, fresh); !done || err != nil {
		t.Errorf("resealing: %v, %v", done, err)
	}
	if got, err := s.Secret(t.Context(), Key("a")); err != nil || string(got) != string(fresh.Sealed) {
		t.Errorf("resealed it is %q, %v", got, err)
	}
}
