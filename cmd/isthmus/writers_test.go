package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"
)

// written is one change that a writer asked for.
type written struct {
	name, object string
	expected     int64 // revision of the object that it was computed from
	began, ended time.Time
	code         string // of the refusal; "": acknowledged
	revision     int64  // that was acknowledged
}

// writers change a few objects, each on condition that nobody else changed it, at
// two hubs in turn, until they are stopped. What they saw is a history that can be
// checked.
type writers struct {
	t    *testing.T
	hubs []*hubUnderTest
	stop func()

	mu      sync.Mutex
	changed chan struct{}  // closed when there is one more answer
	answers map[string]int // by code; "": acknowledged
	failed  []time.Time    // when requests were sent that failed through the store's fault
	failure string         // of the last one
	done    []written
}

const (
	writerCount  = 3
	writtenNames = 2 // objects: fewer than writers, so that they meet
)

func startWriters(t *testing.T, hubs []*hubUnderTest) *writers {
	w := &writers{t: t, hubs: hubs, changed: make(chan struct{}), answers: map[string]int{}}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for i := range writerCount {
		running.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				w.write(ctx, fmt.Sprintf("w%d-%d", i, n), i+n)
			}
		})
	}
	w.stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(w.stop)
	return w
}

// write makes one change. Every second one has an idempotency key, and is repeated at
// the other hub while its end is not known.
func (w *writers) write(ctx context.Context, name string, n int) {
	c := written{name: name, object: fmt.Sprintf("shared-%d", n%writtenNames), began: time.Now()}
	var found struct {
		ConfigObject *struct{ Revision string }
	}
	h := w.hubs[n%len(w.hubs)]
	if err := h.query(fmt.Sprintf(`{configObject(group: "networking.istio.io", kind: "ServiceEntry", namespace: "shop", name: %q) {revision}}`,
		c.object), &found); err != nil {
		w.t.Errorf("%s: reading: %v", name, err)
		return
	}
	if found.ConfigObject != nil {
		c.expected, _ = strconv.ParseInt(found.ConfigObject.Revision, 10, 64)
	}
	for try := 0; ; try++ {
		sent := time.Now()
		code, message := c.send(w.hubs[(n+try)%len(w.hubs)], n%2 == 0)
		w.noteAnswer(sent, code, message)
		if c.code != "UNAVAILABLE" || n%2 != 0 || ctx.Err() != nil {
			break
		}
	}
	c.ended = time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done = append(w.done, c)
}

func (w *writers) noteAnswer(sent time.Time, code, message string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers[code]++
	if code != "" && code != "PRECONDITION_FAILED" && code != "BUSY" {
		w.failed, w.failure = append(w.failed, sent), code+": "+message
	}
	close(w.changed)
	w.changed = make(chan struct{})
}

// send sends the change and returns the code and the message of a refusal.
func (c *written) send(h *hubUnderTest, once bool) (code, message string) {
	key := ""
	if once {
		key = fmt.Sprintf(", idempotencyKey: %q", c.name)
	}
	manifest := fmt.Sprintf(`apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: %[1]s, namespace: shop, labels: {by: %[2]s}}
spec: {hosts: [%[1]s.example.com], resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 192.0.2.1}]}
`, c.object, c.name)
	var answer applyAnswer
	err := h.query(fmt.Sprintf(`mutation {apply(input: {manifests: [%q], message: %q, force: true%s,
		expectedRevisions: [{kind: "ServiceEntry", group: "networking.istio.io", namespace: "shop", name: %q, revision: "%d"}]}) {revision userErrors {code message}}}`,
		manifest, c.name, key, c.object, c.expected), &answer)
	c.code = ""
	switch {
	case err != nil:
		c.code, message = "NO_ANSWER", err.Error()
	case len(answer.Apply.UserErrors) > 0:
		c.code, message = answer.Apply.UserErrors[0].Code, answer.Apply.UserErrors[0].Message
	default:
		c.revision, _ = strconv.ParseInt(answer.Apply.Revision, 10, 64)
	}
	return c.code, message
}

// await waits for so many more answers with the code.
func (w *writers) await(code string, n int) {
	w.t.Helper()
	limit := time.NewTimer(2 * patience)
	defer limit.Stop()
	w.mu.Lock()
	goal := w.answers[code] + n
	w.mu.Unlock()
	for {
		w.mu.Lock()
		have, changed, failure := w.answers[code], w.changed, w.failure
		w.mu.Unlock()
		if have >= goal {
			return
		}
		select {
		case <-changed:
		case <-limit.C:
			w.t.Fatalf("waiting for %d answers %q: %d are missing; the last failure is %s", n, code, goal-have, failure)
		}
	}
}

// more waits for changes that are acknowledged.
func (w *writers) more(n int) {
	w.t.Helper()
	w.await("", n)
}

func (w *writers) refused(code string) {
	w.t.Helper()
	w.await(code, 1)
}

// refusals counts the requests that were sent since then and failed through the
// store's fault, and tells the last one's.
func (w *writers) refusals(since time.Time) (n int, last string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, sent := range w.failed {
		if !sent.Before(since) {
			n++
		}
	}
	return n, w.failure
}
