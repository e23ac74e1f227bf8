package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/internal/cli/cmdutil"
)

// asked is an answer with the revision that it shows.
type asked struct {
	Data     json.RawMessage
	Errors   []struct{ Message string }
	revision string
}

// askFrom sends an operation that wants at least that revision; "": any.
func (h *hubUnderTest) askFrom(t *testing.T, query, least string) asked {
	t.Helper()
	body, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequest(http.MethodPost, "http://localhost/graphql", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if least != "" {
		request.Header.Set("Isthmus-Min-Revision", least)
	}
	answer, err := h.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	a := asked{revision: answer.Header.Get("Isthmus-Revision")}
	if err := json.NewDecoder(answer.Body).Decode(&a); err != nil {
		t.Fatal(err)
	}
	return a
}

// TestR72RevisionOfOneHubHoldsAtTheOther: what a hub has just answered can be
// expected, and read, at another one at once.
func TestR72RevisionOfOneHubHoldsAtTheOther(t *testing.T) {
	t.Parallel()
	store := testbed.StartEtcd(t, testbed.EtcdOptions{})
	key := filepath.Join(shortDir(t), "seal.key")
	var hubs [2]*hubUnderTest
	for i := range hubs {
		hubs[i] = startProgramIn(t, shortDir(t), "--etcd-endpoints", store.URL, "--seal-key", key).at()
	}
	revision := ""
	for n := range 30 {
		h := hubs[n%2]
		expected := ""
		if revision != "" {
			expected = fmt.Sprintf("expectedRevision: %q", revision)
		}
		made := h.askFrom(t, fmt.Sprintf(`mutation {apply(input: {manifests: [%q] %s}) {revision userErrors {code message}}}`,
			fmt.Sprintf(entryManifest, fmt.Sprintf("entry-%d", n), 1), expected), "")
		var answer applyAnswer
		if err := json.Unmarshal(made.Data, &answer); err != nil || len(answer.Apply.UserErrors) > 0 {
			t.Fatalf("change %d on revision %s gives %+v, %v", n, revision, answer, err)
		}
		revision = answer.Apply.Revision
		if made.revision != revision {
			t.Errorf("the header of revision %s says %q", revision, made.revision)
		}
		hubs[(n+1)%2].wantEntry(t, n, revision)
	}
	if got := hubs[0].askFrom(t, `{hub {revision}}`, "99999"); len(got.Errors) != 1 || string(got.Data) != "" {
		t.Errorf("a revision that nobody made gives %s, %+v", got.Data, got.Errors)
	}
}

// wantEntry reads the entry, by header or by argument, or on the command line.
func (h *hubUnderTest) wantEntry(t *testing.T, n int, revision string) {
	t.Helper()
	name := fmt.Sprintf("entry-%d", n)
	if n%3 == 2 {
		o := outcome{out: new(Text), errors: new(Text)}
		line := []string{
			"get", "serviceentry", name, "-n", "shop", "--min-revision", revision, "--server",
			"unix:" + filepath.Join(h.dir, "graphql"),
		}
		if code := run(context.Background(), line, cmdutil.Streams{Out: o.out, Err: o.errors}); code != cmdutil.ExitDone {
			t.Errorf("%v exits with %d: %s", line, code, o.errors.String())
		}
		return
	}
	least, argument := revision, ""
	if n%3 == 1 {
		least, argument = "", fmt.Sprintf(", minRevision: %q", revision)
	}
	got := h.askFrom(t,
		fmt.Sprintf(`{configObject(group: "networking.istio.io", kind: "ServiceEntry", namespace: "shop", name: %q%s) {revision} hub {revision}}`,
			name, argument), least)
	var answer struct {
		ConfigObject *struct{ Revision string }
		Hub          struct{ Revision string }
	}
	if err := json.Unmarshal(got.Data, &answer); err != nil || answer.ConfigObject == nil || answer.ConfigObject.Revision != revision ||
		answer.Hub.Revision != got.revision {
		t.Errorf("at revision %s the other hub answers %s as revision %s, %+v", revision, got.Data, got.revision, got.Errors)
	}
}
