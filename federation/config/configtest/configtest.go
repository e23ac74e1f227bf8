// Package configtest is the conformance suite that every store of configuration
// passes: what a Source gives, what a Log keeps, and what leases do.
package configtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
)

// Store is what is tested.
type Store interface {
	config.Source
	config.Log
	config.Leases
	config.Secrets
}

// Patience is how long the suite waits for what must come: long enough for a
// machine that has other work.
const Patience = 5 * time.Minute

// Written is a source and who writes what it gives.
type Written interface {
	config.Source
	// Commit writes and returns the revision that the source will give; only the
	// changes of the commit count.
	Commit(ctx context.Context, c config.Commit) (int64, error)
}

// RunSource runs the tests that every source must pass, at the same time; open returns an
// empty one each time.
func RunSource(t *testing.T, open func(t *testing.T) Written) {
	for _, c := range append(ofWatched(),
		ofSource{"CommitIsOneUpdate", oneUpdate},
		ofSource{"TenThousandObjectsAreOneUpdate", tenThousand},
	) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, open(t))
		})
	}
}

// RunWatched runs the tests of RunSource that need no commit of several objects, which
// some places that are watched do not have. It runs them one after another: what open
// returns may read one place.
func RunWatched(t *testing.T, open func(t *testing.T) Written) {
	for _, c := range ofWatched() {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

type ofSource struct {
	name string
	test func(*testing.T, Written)
}

func ofWatched() []ofSource {
	return []ofSource{
		{"FullFirst", fullFirst},
		{"Seed34CreateGivesARevisionAndUpdateANewOne", revisions},
		{"RunAgainGivesTheSame", again},
	}
}

// Run runs the whole suite, all tests at the same time; open returns an empty store each
// time.
func Run(t *testing.T, open func(t *testing.T) Store) {
	RunSource(t, func(t *testing.T) Written { return open(t) })
	for _, c := range []struct {
		name string
		test func(*testing.T, Store)
	}{
		{"CommitOnAnOldBaseIsMoved", moved},
		{"SixteenWritersLoseNothing", writers},
		{"RefusedCommitsChangeNothing", refused},
		{"RecordsAreTheHistory", records},
		{"R40HistoryOfAnObjectIsWhatTheRecordsSay", history},
		{"AtIsThePast", past},
		{"IdempotencyKeyCommitsOnce", once},
		{"UnchangedObjectsKeepTheirRevision", unchanged},
		{"LeasedObjectsComeAndGo", leases},
		{"RenewalKeepsARegistration", renewal},
		{"CommittedObjectHidesALeasedOne", hidden},
		{"SecretsAreBesideTheirObjects", secrets},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, open(t))
		})
	}
}

// Key returns the key of a test's object.
func Key(name string) federation.ObjectKey {
	return federation.WorkloadEntryKind.Key("shop", name)
}

// Object returns an object that a store takes; value is something in its spec.
func Object(name string, value any) *config.Object {
	key := Key(name)
	manifest, err := json.Marshal(map[string]any{
		"apiVersion": key.Group + "/v1", "kind": key.Kind,
		"metadata": map[string]any{"name": key.Name, "namespace": key.Namespace},
		"spec":     map[string]any{"value": value},
	})
	if err != nil {
		panic(err)
	}
	return &config.Object{Key: key, APIVersion: "v1", Manifest: manifest}
}

// Value returns what is in the spec of an Object.
func Value[T any](o *config.Object) T {
	var m struct{ Spec struct{ Value T } }
	if err := json.Unmarshal(o.Manifest, &m); err != nil {
		panic(err)
	}
	return m.Spec.Value
}

// Set is a commit that puts the objects.
func Set(base int64, objects ...*config.Object) config.Commit {
	c := config.Commit{Base: base, Note: config.Note{Author: "ann", Message: "set"}}
	for _, o := range objects {
		c.Changes = append(c.Changes, config.Change{Key: o.Key, Object: o})
	}
	return c
}

// Gone is a commit that deletes an object.
func Gone(base int64, name string) config.Commit {
	return config.Commit{Base: base, Changes: []config.Change{{Key: Key(name)}}, Note: config.Note{Author: "bob"}}
}

// Must commits and returns the revision.
func Must(t *testing.T, s interface {
	Commit(ctx context.Context, c config.Commit) (int64, error)
}, c config.Commit,
) int64 {
	t.Helper()
	revision, err := s.Commit(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

// Recorder is a Sink that remembers. It checks that what comes fits to what came.
type Recorder struct {
	mu       sync.Mutex
	moved    chan struct{}
	Updates  []config.Update
	objects  map[federation.ObjectKey]*config.Object
	problems []config.Problem
	troubles []Trouble
	wrong    []string
}

// Trouble is the trouble that a source reported, and how many objects there were then.
type Trouble struct {
	Problems []config.Problem
	Objects  int
}

// Listen runs the source until the test ends, or stop is called.
func Listen(t *testing.T, s config.Source) (h *Recorder, stop func()) {
	t.Helper()
	h = &Recorder{moved: make(chan struct{}), objects: map[federation.ObjectKey]*config.Object{}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, h) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the source ended: %v", err)
		}
		for _, w := range h.wrong {
			t.Error(w)
		}
	})
	t.Cleanup(stop)
	return h, stop
}

// Update is part of config.Sink.
func (h *Recorder) Update(u config.Update) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if (len(h.Updates) == 0) != u.Full {
		h.wrong = append(h.wrong, fmt.Sprintf("update %d has Full %v", len(h.Updates), u.Full))
	}
	for _, e := range u.Events {
		o := e.New
		if o == nil {
			o = e.Old
		}
		if h.objects[o.Key] != e.Old {
			h.wrong = append(h.wrong, fmt.Sprintf("revision %d: Old of %s is not what was given before", u.Revision, o.Key))
		}
		h.objects[o.Key] = e.New
		if e.New == nil {
			delete(h.objects, o.Key)
		}
	}
	h.Updates = append(h.Updates, u)
	h.signal()
}

// Trouble is part of config.Sink.
func (h *Recorder) Trouble(p []config.Problem) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.problems, h.troubles = p, append(h.troubles, Trouble{p, len(h.objects)})
	h.signal()
}

func (h *Recorder) signal() {
	close(h.moved)
	h.moved = make(chan struct{})
}

// Seen is what a Sink knows at one moment.
type Seen struct {
	Updates  []config.Update
	Objects  map[federation.ObjectKey]*config.Object
	Problems []config.Problem
	Troubles []Trouble // all that were said, also those that ended before anybody looked
}

// Revision returns that of the last update, or -1.
func (s Seen) Revision() int64 {
	if len(s.Updates) == 0 {
		return -1
	}
	return s.Updates[len(s.Updates)-1].Revision
}

// Codes returns the codes of the problems.
func (s Seen) Codes() string {
	var codes []string
	for _, p := range s.Problems {
		codes = append(codes, p.Code)
	}
	return strings.Join(codes, " ")
}

// Now returns what was given so far.
func (h *Recorder) Now() Seen {
	h.mu.Lock()
	defer h.mu.Unlock()
	return Seen{h.Updates[:len(h.Updates):len(h.Updates)], maps.Clone(h.objects), h.problems, h.troubles[:len(h.troubles):len(h.troubles)]}
}

// Wait waits until the condition holds.
func (h *Recorder) Wait(t *testing.T, what string, holds func(Seen) bool) Seen {
	t.Helper()
	limit := time.NewTimer(Patience)
	defer limit.Stop()
	for {
		h.mu.Lock()
		moved := h.moved
		h.mu.Unlock()
		s := h.Now()
		if holds(s) {
			return s
		}
		select {
		case <-moved:
		case <-limit.C:
			t.Fatalf("waiting for %s: revision %d, %d objects, problems %v", what, s.Revision(), len(s.Objects), s.Problems)
		}
	}
}

// WaitRevision waits until the revision was given.
func (h *Recorder) WaitRevision(t *testing.T, revision int64) Seen {
	t.Helper()
	return h.Wait(t, fmt.Sprintf("revision %d", revision), func(s Seen) bool { return s.Revision() >= revision })
}

func limitOf(err error) string {
	var r *config.Refused
	if errors.As(err, &r) {
		return r.Limit
	}
	return ""
}
