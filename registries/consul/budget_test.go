package consul

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/retry"
	"isthmus.dev/isthmus/registries/registrytest"
)

// many answers with that many instances of web, each with a meta of that size.
func many(n, size int) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, q *http.Request) {
		if index := q.URL.Query().Get("index"); index != "" && index == w.Header().Get("X-Consul-Index") {
			retry.Sleep(q.Context(), 200*time.Millisecond)
		}
		_, _ = fmt.Fprint(w, "[")
		for i := range n {
			if i > 0 {
				_, _ = fmt.Fprint(w, ",")
			}
			_,
				err := fmt.Fprintf(w,
				`{"Node":{"ID":"n-1","Node":"n1","Address":"10.0.0.1","Datacenter":"dc1"},"Service":{"ID":"web-%d","Service":"web","Port":80,"Address":"10.1.%d.%d","Meta":{"a":%q},"Weights":{"Passing":1,"Warning":1}},"Checks":[]}`,
				i, i/250, i%250+1, strings.Repeat("x", size))
			if err != nil {
				return // the client hangs up
			}
		}
		_, _ = fmt.Fprint(w, "]")
	}
}

// TestR06AnswersWithoutEnd: what a Consul says beyond its limits is not used; what
// was known stays, and the status says why, until the answers are smaller.
func TestR06AnswersWithoutEnd(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		limits federation.Limits
		flood  func(http.ResponseWriter, *http.Request)
		says   string
	}{
		"Instances": {federation.Limits{Objects: 50}, many(200, 1), "more than 50 objects, its limit"},
		"Kept":      {federation.Limits{Bytes: 1 << 20}, many(1020, 1), "more than 1048576 bytes, its limit"},
		"OneAnswer": {federation.Limits{Bytes: 1 << 20}, many(1<<30, 1000), "more than 1048576 bytes, its limit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &scripted{asked: map[string]int{}, index: 100}
			s.health = test.flood
			server := httptest.NewServer(s)
			t.Cleanup(server.Close)
			registry, err := New(Options{Cluster: "c1", Address: server.URL, Wait: time.Second, Limits: test.limits})
			if err != nil {
				t.Fatal(err)
			}
			recorder := heardOf(t, registry)
			refused := func(v registrytest.View) bool { return strings.Contains(v.Status.Message, test.says) }
			if v := recorder.Wait(t, "the first answer to be refused", refused); v.Status.Phase != federation.Failed || v.Edits != 0 {
				t.Errorf("after %d edits it is %+v", v.Edits, v.Status)
			}
			s.set(101, s.web("10.0.0.1"))
			recorder.WaitPhase(t, federation.Ready)
			s.set(102, test.flood)
			v := recorder.Wait(t, "a later answer to be refused", refused)
			if v.Status.Phase != federation.Stale || !webAt("10.0.0.1")(v) {
				t.Errorf("it is %+v, with %v", v.Status, v.Services)
			}
			s.set(103, s.web("10.0.0.2"))
			recorder.Wait(t, "the next good answer", webAt("10.0.0.2"))
			recorder.WaitPhase(t, federation.Ready)
		})
	}
}

// answering runs a registry with these limits against services that all answer alike.
func answering(t *testing.T, limits federation.Limits, services int, answer func(name string) string) *registrytest.Recorder {
	t.Helper()
	s := &scripted{asked: map[string]int{}, index: 100}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("X-Consul-Index", "100")
		name, ok := strings.CutPrefix(q.URL.Path, healthPath)
		switch {
		case q.URL.Query().Has("index"):
			retry.Sleep(q.Context(), time.Minute)
		case q.URL.Path == servicesPath && !q.URL.Query().Has("filter"):
			_, _ = fmt.Fprint(w, `{"consul":[]`)
			for i := range services {
				_, _ = fmt.Fprintf(w, `,"web-%d":[]`, i)
			}
			_, _ = fmt.Fprint(w, "}")
		case ok && name != canaryService:
			_, _ = fmt.Fprint(w, answer(name))
		default:
			s.ServeHTTP(w, q)
		}
	}))
	t.Cleanup(server.Close)
	registry, err := New(Options{Cluster: "c1", Address: server.URL, Wait: time.Second, Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	return heardOf(t, registry)
}

// instancesOf are instances of a service, of which each lacks one of the tags.
func instancesOf(name string, n int, tags ...string) string {
	var all []string
	for i := range n {
		var own []string
		for j, tag := range tags {
			if j != i {
				own = append(own, fmt.Sprintf("%q", tag))
			}
		}
		all = append(all,
			fmt.Sprintf(`{"Node":{"ID":"n-1","Node":"n1","Datacenter":"dc1"},"Service":{"ID":"%s-%d","Service":%q,"Port":80,"Address":"10.1.%d.%d","Tags":[%s]}}`,
				name, i, name, i/250, i%250+1, strings.Join(own, ",")))
	}
	return "[" + strings.Join(all, ",") + "]"
}

// TestR06WhatIsMadeOfAnswersIsBounded: answers that are small by themselves, of which the hub makes much more: many services; JSON
// whose values take little text; tags that make services and names.
func TestR06WhatIsMadeOfAnswersIsBounded(t *testing.T) {
	tags := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	shared := make([]string, 30)
	for i := range shared {
		shared[i] = fmt.Sprintf("shared-%d", i)
	}
	for name, test := range map[string]struct {
		limit    int64
		services int
		answer   func(name string) string
	}{
		"many services":  {1 << 20, 30, func(name string) string { return instancesOf(name, 60) }},
		"empty objects":  {8 << 20, 1, func(string) string { return "[{}" + strings.Repeat(`,{"Node":{},"Service":{}}`, 60_000) + "]" }},
		"empty texts":    {8 << 20, 1, func(string) string { return `[{"Service":{"Tags":[""` + strings.Repeat(`,""`, 500_000) + "]}}]" }},
		"tagged":         {900 << 10, 1, func(name string) string { return instancesOf(name, 200, tags...) }},
		"names of tags":  {900 << 10, 60, func(name string) string { return instancesOf(name, 1, append([]string{"", ""}, shared...)[1:]...) }},
		"names of a map": {8 << 20, 1, func(string) string { return `[{"Service":{"Meta":{"":""` + strings.Repeat(`,"a":""`, 200_000) + "}}}]" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			recorder := answering(t, federation.Limits{Bytes: test.limit}, test.services, test.answer)
			v := recorder.Wait(t, "the end of the sync", func(v registrytest.View) bool {
				return v.Status.Phase == federation.Failed || v.Status.Phase == federation.Ready
			})
			if want := fmt.Sprintf("more than %d bytes, its limit", test.limit); v.Status.Phase != federation.Failed ||
				!strings.Contains(v.Status.Message, want) {
				t.Errorf("it is %+v with %d services, want that it says %q", v.Status, len(v.Services), want)
			}
			recorder = answering(t, federation.Limits{Bytes: 4 * test.limit}, 1, func(name string) string { return instancesOf(name, 200, "a", "b") })
			recorder.WaitPhase(t, federation.Ready)
		})
	}
}

// TestR06ACatalogueWithoutEndFails: the status says why, the usage shows the progress of the
// answer, and none of it is kept. Once the catalogue ends, it is read.
func TestR06ACatalogueWithoutEndFails(t *testing.T) {
	t.Parallel()
	s := &scripted{asked: map[string]int{}, index: 100}
	s.health = s.web("10.0.0.1")
	var ends atomic.Bool
	names := []byte(strings.Repeat(`,"svc":["`+strings.Repeat("x", 1000)+`"]`, 1000))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path != servicesPath || q.URL.Query().Has("filter") || ends.Load() {
			s.ServeHTTP(w, q)
			return
		}
		_, err := fmt.Fprint(w, `{"consul":[]`)
		for err == nil { // until the client hangs up
			_, err = w.Write(names)
		}
	}))
	t.Cleanup(server.Close)
	var mu sync.Mutex
	var most, last federation.Usage
	registry, err := New(Options{Cluster: "c1", Address: server.URL, Wait: time.Second, Used: func(u federation.Usage) {
		mu.Lock()
		defer mu.Unlock()
		most.Bytes, last = max(most.Bytes, u.Bytes), u
	}})
	if err != nil {
		t.Fatal(err)
	}
	recorder := heardOf(t, registry)
	v := recorder.Wait(t, "the catalogue to be refused", func(v registrytest.View) bool {
		return strings.Contains(v.Status.Message, "the answer to /v1/catalog/services is larger than 64 MiB")
	})
	if v.Status.Phase != federation.Failed || v.Edits != 0 {
		t.Errorf("after %d edits it is %+v", v.Edits, v.Status)
	}
	mu.Lock()
	if most.Bytes < maxAnswer {
		t.Errorf("the usage showed at most %+v while more than %d bytes came", most, maxAnswer)
	}
	mu.Unlock()
	ends.Store(true)
	recorder.WaitPhase(t, federation.Ready)
	mu.Lock()
	defer mu.Unlock()
	if last.Bytes > 1<<20 || last.Objects == 0 {
		t.Errorf("afterwards the usage is %+v", last)
	}
}

// heardOf runs the registry until the test ends, and records what it says.
func heardOf(t *testing.T, registry *Registry) *registrytest.Recorder {
	t.Helper()
	recorder := &registrytest.Recorder{}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- registry.Run(ctx, recorder) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		recorder.Check(t)
	})
	return recorder
}

// TestR06OnlyFollowedNamesAreKept: a list may have millions of names, and is kept as long as it is followed.
func TestR06OnlyFollowedNamesAreKept(t *testing.T) {
	all := catalog{canaryService: nil}
	for i := range 10_000 {
		all[numbered("web", i)] = []string{"tag"}
	}
	got := all.listing(3)
	want := listing{names: []string{"web-000", "web-001", "web-002"}, over: 9_997}
	if !got.equal(want) || cap(got.names) > 8 {
		t.Errorf("it keeps %v, and room for %d names", got, cap(got.names))
	}
}
