package kubernetes

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"k8s.io/client-go/rest"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/kube/clients"
	"isthmus.dev/isthmus/registries/registrytest"
)

// hostile answers as an empty cluster does, but for its pods: a list of them has
// as many pages as it likes, and a watch sends as many as it likes.
type hostile struct {
	mu      sync.Mutex
	pages   int           // of a list of pods; negative: without end
	onPage  int           // pods
	tokens  []string      // continue tokens, in turn; nil: a new one each time
	label   string        // of every pod
	watched int           // pods that a watch sends
	begin   chan struct{} // closed when watches may send

	listed int // pages that were asked for
}

func (h *hostile) set(change func(*hostile)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(h)
}

func (h *hostile) pod(name string) string {
	return fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":"suite","resourceVersion":"7","labels":{"a":%q}}}`,
		name, h.label)
}

func (h *hostile) RoundTrip(request *http.Request) (*http.Response, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	query := request.URL.Query()
	pods := strings.HasSuffix(request.URL.Path, "/pods")
	switch {
	case query.Get("watch") != "":
		events := ""
		for i := range h.watched {
			if pods {
				events += fmt.Sprintf(`{"type":"ADDED","object":%s}`, h.pod(fmt.Sprint("w", i)))
			}
		}
		return answer(http.StatusOK, struct {
				io.Reader
				io.Closer
			}{
				io.MultiReader(waiting{h.begin, request.Context().Done()}, strings.NewReader(events), quiet{done: request.Context().Done()}),
				quiet{},
			}),
			nil
	case strings.HasSuffix(request.URL.Path, "/namespaces"):
		return answer(http.StatusOK, io.NopCloser(strings.NewReader(`{"metadata":{"resourceVersion":"10"},"items":[`+pacedItem+`]}`))), nil
	case pods:
		return answer(http.StatusOK, io.NopCloser(strings.NewReader(h.page()))), nil
	}
	return answer(http.StatusOK, io.NopCloser(strings.NewReader(`{"metadata":{"resourceVersion":"10"},"items":[]}`))), nil
}

// waiting has nothing to read until it may begin; nil: at once.
type waiting struct{ begin, done <-chan struct{} }

func (w waiting) Read([]byte) (int, error) {
	if w.begin != nil {
		select {
		case <-w.begin:
		case <-w.done:
			return 0, context.Canceled
		}
	}
	return 0, io.EOF
}

func (h *hostile) page() string {
	h.listed++
	var items []string
	for i := range h.onPage {
		items = append(items, h.pod(fmt.Sprintf("p%d-%d", h.listed, i)))
	}
	token := fmt.Sprint("t", h.listed)
	if len(h.tokens) > 0 {
		token = h.tokens[h.listed%len(h.tokens)]
	}
	if h.pages >= 0 && h.listed >= h.pages {
		token = ""
	}
	return fmt.Sprintf(`{"metadata":{"resourceVersion":"10","continue":%q},"items":[%s]}`, token, strings.Join(items, ","))
}

func startHostile(t *testing.T, server *hostile, limits federation.Limits, used func(federation.Usage)) *registrytest.Recorder {
	t.Helper()
	client, err := clients.New(&rest.Config{Host: "http://cluster.test", Transport: server, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	recorder := &registrytest.Recorder{}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- New(Options{Cluster: "c1", Client: client, Limits: limits, Used: used}).Run(ctx, recorder)
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run says %v", err)
		}
		recorder.Check(t)
	})
	return recorder
}

// TestR06EndlessLists: a cluster whose list has no end, or more than the cluster
// may have, is FAILED, says why, and takes no more memory; once it is well it is
// READY.
func TestR06EndlessLists(t *testing.T) {
	for name, test := range map[string]struct {
		server *hostile
		limits federation.Limits
		says   string
		pages  int // at most, in the first list
	}{
		"Objects": {&hostile{pages: -1, onPage: 20}, federation.Limits{Objects: 1000}, "more than 1000 objects, its limit", 51},
		"Bytes": {
			&hostile{pages: -1, onPage: 1, label: strings.Repeat("x", 10_000)},
			federation.Limits{Bytes: 1 << 20},
			"more than 1048576 bytes, its limit", 110,
		},
		"EmptyPages":    {&hostile{pages: -1}, federation.Limits{Pages: 40}, "more than 40 pages, its limit", 41},
		"TheSameToken":  {&hostile{pages: -1, tokens: []string{"again"}}, federation.Limits{}, "the same continue token twice", 2},
		"TokensInTurns": {&hostile{pages: -1, tokens: []string{"a", "b", "c"}}, federation.Limits{}, "the same continue token twice", 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				recorder := startHostile(t, test.server, test.limits, func(federation.Usage) {})
				v := recorder.Wait(t, "the list to be refused", func(v registrytest.View) bool { return strings.Contains(v.Status.Message, test.says) })
				if test.says[:4] == "more" && v.Status.Phase != federation.Failed || v.Edits != 0 {
					t.Errorf("after %d edits it is %+v", v.Edits, v.Status)
				}
				if !strings.Contains(v.Status.Message, "list pods") {
					t.Errorf("the message does not say what was read: %s", v.Status.Message)
				}
				test.server.set(func(h *hostile) {
					if h.listed > test.pages {
						t.Errorf("%d pages were read before it was refused", h.listed)
					}
					h.pages, h.onPage, h.label = 0, 3, ""
				})
				recorder.WaitPhase(t, federation.Ready)
			})
		})
	}
}

// TestR06UsageShowsTheProgressOfAList that does not end, and none of it once the list
// was refused.
func TestR06UsageShowsTheProgressOfAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var most, last federation.Usage
		server := &hostile{pages: -1, onPage: 20}
		recorder := startHostile(t, server, federation.Limits{Objects: 1000}, func(used federation.Usage) {
			mu.Lock()
			defer mu.Unlock()
			most, last = federation.Usage{Objects: max(most.Objects, used.Objects), Bytes: max(most.Bytes, used.Bytes)}, used
		})
		recorder.Wait(t, "the list to be refused", func(v registrytest.View) bool { return v.Status.Phase == federation.Failed })
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if most.Objects < 900 || most.Objects > 1000 || most.Bytes == 0 {
			t.Errorf("while the list came, the usage showed at most %+v", most)
		}
		if last.Objects >= 900 {
			t.Errorf("after the list was refused, the usage is %+v", last)
		}
	})
}

// TestR06EndlessWatch: what is known stays, no more is taken, and the status says
// why, until the cluster has fewer objects.
func TestR06EndlessWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var most federation.Usage
		server := &hostile{onPage: 30, watched: 500, begin: make(chan struct{})}
		recorder := startHostile(t, server, federation.Limits{Objects: 100}, func(used federation.Usage) {
			mu.Lock()
			defer mu.Unlock()
			most = federation.Usage{Objects: max(most.Objects, used.Objects), Bytes: max(most.Bytes, used.Bytes)}
		})
		recorder.WaitPhase(t, federation.Ready)
		close(server.begin)
		v := recorder.Wait(t, "the watch to be refused", func(v registrytest.View) bool { return v.Status.Phase == federation.Stale })
		if !strings.Contains(v.Status.Message, "more than 100 objects") {
			t.Errorf("status %+v", v.Status)
		}
		server.set(func(h *hostile) { h.watched = 0 })
		recorder.WaitPhase(t, federation.Ready)
		mu.Lock()
		defer mu.Unlock()
		if most.Objects > 100 || most.Objects < 30 || most.Bytes == 0 {
			t.Errorf("it kept %+v", most)
		}
	})
}
