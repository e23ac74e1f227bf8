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

// scripted answers what a real Consul cannot be made to answer. Its services
// are web and db; health decides each answer about web.
type scripted struct {
	mu      sync.Mutex
	health  func(w http.ResponseWriter, q *http.Request)
	asked   map[string]int
	refused []time.Time // when web was asked for and refused
	index   uint64
}

const instanceJSON = `[{"Node":{"ID":"n-1","Node":"n1","Address":"10.0.0.1","Datacenter":"dc1"},"Service":{"ID":"%s","Service":"%s","Port":80,"Address":"%s","Weights":{"Passing":1,"Warning":1}},"Checks":[]}]`

func (s *scripted) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	s.mu.Lock()
	s.asked[q.URL.Path]++
	health, index := s.health, s.index
	s.mu.Unlock()
	blocks := q.URL.Query().Get("index") == fmt.Sprint(index)
	w.Header().Set("X-Consul-Index", fmt.Sprint(index))
	switch q.URL.Path {
	case "/v1/health/service/consul":
		fmt.Fprintf(w, instanceJSON, "consul", "consul", "10.0.0.100")
		return
	case "/v1/health/service/web":
		health(w, q)
		return
	}
	if blocks {
		wait, _ := time.ParseDuration(q.URL.Query().Get("wait"))
		if !retry.Sleep(q.Context(), wait) {
			return
		}
	}
	if q.URL.Path == "/v1/catalog/services" {
		fmt.Fprint(w, `{"consul":[],"web":[],"db":[]}`)
		return
	}
	fmt.Fprintf(w, instanceJSON, "db", "db", "10.0.0.3")
}

func (s *scripted) count(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[path]
}

func (s *scripted) set(index uint64, health func(http.ResponseWriter, *http.Request)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index, s.health = index, health
}

const webPath = "/v1/health/service/web"

// web answers with one instance and blocks while the index is the same.
func (s *scripted) web(address string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, q *http.Request) {
		if index := q.URL.Query().Get("index"); index != "" && index == w.Header().Get("X-Consul-Index") {
			retry.Sleep(q.Context(), 200*time.Millisecond)
		}
		fmt.Fprintf(w, instanceJSON, "web", "web", address)
	}
}

// startScripted runs a registry against the script.
func startScripted(t *testing.T) (*scripted, *registrytest.Recorder) {
	t.Helper()
	s := &scripted{asked: map[string]int{}, index: 100}
	s.health = s.web("10.0.0.1")
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	registry, err := New(Options{Cluster: "c1", Address: server.URL, Wait: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	recorder, ctx := &registrytest.Recorder{}, t.Context()
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer close(done)
		if err := registry.Run(ctx, recorder); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { cancel(); <-done; recorder.Check(t) })
	recorder.WaitPhase(t, federation.Ready)
	return s, recorder
}

var webKey = federation.ServiceKey{Hostname: "web.service.consul"}

func webAt(address string) func(registrytest.View) bool {
	return func(v registrytest.View) bool {
		s := v.Services[webKey]
		return s != nil && s.Endpoints[0].Address.String() == address
	}
}

func TestF58IndexGoesBack(t *testing.T) {
	t.Parallel()
	s, recorder := startScripted(t)
	s.set(40, s.web("10.0.0.2"))
	recorder.Wait(t, "what Consul says after its index went back", webAt("10.0.0.2"))
	edits := recorder.Edits()
	if last := edits[len(edits)-1]; !last.Services.Full || len(last.Services.Set) != 2 {
		t.Errorf("after the index went back came %+v, want a full edit", last.Services)
	}
	for _, state := range recorder.Statuses() {
		if state.Phase == federation.Stale && !isUnanswered(state) {
			t.Errorf("a re-list brought STALE: %s", state.Message)
		}
	}
}

// gently fails when the service web is asked for much more than once a second.
func gently(t *testing.T, s *scripted, answers int) {
	t.Helper()
	began, before := time.Now(), s.count(webPath)
	until(t, "some answers", func() bool { return s.count(webPath)-before >= answers })
	if took := time.Since(began); took < time.Duration(answers-1)*time.Second/2 {
		t.Errorf("%d answers without a difference in %v, want one a second", answers, took)
	}
}

func TestF59F62HotAnswersAreAskedForOnceASecond(t *testing.T) {
	t.Parallel()
	var moving atomic.Uint64
	moving.Store(1000)
	for name, header := range map[string]func(http.ResponseWriter){
		"missing index": func(w http.ResponseWriter) { w.Header().Del("X-Consul-Index") },
		"index 0":       func(w http.ResponseWriter) { w.Header().Set("X-Consul-Index", "0") },
		"index 2^64":    func(w http.ResponseWriter) { w.Header().Set("X-Consul-Index", "18446744073709551616") },
		"moving index": func(w http.ResponseWriter) {
			w.Header().Set("X-Consul-Index", fmt.Sprint(moving.Add(1)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, recorder := startScripted(t)
			edits := recorder.View().Edits
			s.set(100, func(w http.ResponseWriter, _ *http.Request) {
				header(w)
				fmt.Fprintf(w, instanceJSON, "web", "web", "10.0.0.1")
			})
			before := s.count(webPath)
			until(t, "the first hot answer", func() bool { return s.count(webPath) > before+1 })
			gently(t, s, 4)
			if after := recorder.View().Edits; after != edits && !stopped(recorder) {
				t.Errorf("%d edits without a difference", after-edits)
			}
			s.set(101, func(w http.ResponseWriter, _ *http.Request) {
				header(w)
				fmt.Fprintf(w, instanceJSON, "web", "web", "10.0.0.9")
			})
			recorder.Wait(t, "a real change", webAt("10.0.0.9"))
		})
	}
}

func TestBC12OddAnswersKeepTheState(t *testing.T) {
	t.Parallel()
	for name, odd := range map[string]string{
		"wrong types":  `[{"Node":{"ID":7},"Service":{"Port":"eighty"}}]`,
		"no list":      `{"secret-of-the-answer":true}`,
		"no JSON":      `<html>secret-of-the-answer</html>`,
		"cut":          `[{"Node":{"ID":"n-1"`,
		"null":         `null`,
		"two values":   `[] <html>secret-of-the-answer</html>`,
		"64 MiB":       `[` + strings.Repeat(" ", maxAnswer) + `]`,
		"deep nesting": strings.Repeat("[", 100_000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, recorder := startScripted(t)
			s.set(101, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, odd) })
			v := recorder.Wait(t, "the problem of web", func(v registrytest.View) bool { return problemOf(v, "web", "") })
			if !webAt("10.0.0.1")(v) || v.Status.Phase != federation.Ready && !isUnanswered(v.Status) {
				t.Errorf("an odd answer left %+v and %s", v.Services[webKey], v.Status.Phase)
			}
			for _, p := range v.Problems {
				if p.Object != "Service web" && !strings.Contains(p.Message, "no answer within") || strings.Contains(p.Message, "secret") {
					t.Errorf("the problem is %+v", p)
				}
			}
			s.set(102, s.web("10.0.0.1"))
			recorder.Wait(t, "the end of the problem", func(v registrytest.View) bool { return len(v.Problems) == 0 })
		})
	}
}

func TestBC12RedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	reached := make(chan struct{}, 10)
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached <- struct{}{} }))
	defer other.Close()
	s, recorder := startScripted(t)
	s.set(101, func(w http.ResponseWriter, q *http.Request) { http.Redirect(w, q, other.URL, http.StatusFound) })
	v := recorder.Wait(t, "the problem of web, which names the redirect",
		func(v registrytest.View) bool { return problemOf(v, "web", "redirect") })
	if !webAt("10.0.0.1")(v) || v.Status.Phase != federation.Ready && !isUnanswered(v.Status) {
		t.Errorf("a redirect left %+v and %+v", v.Status, v.Services[webKey])
	}
	select {
	case <-reached:
		t.Error("the redirect was followed")
	default:
	}
}

func TestTooManyRequestsAreBackedOff(t *testing.T) {
	t.Parallel()
	s, recorder := startScripted(t)
	edits := recorder.View().Edits
	s.set(101, func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		s.refused = append(s.refused, time.Now())
		s.mu.Unlock()
		w.Header().Set("Retry-After", "2")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	attempts := func() []time.Time {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.refused
	}
	until(t, "two attempts after a refusal", func() bool { return len(attempts()) >= 3 })
	if at := attempts(); at[2].Sub(at[0]) < 3*time.Second {
		t.Errorf("two attempts in %v, although Consul asked for 2 s before each", at[2].Sub(at[0]))
	}
	s.set(102, s.web("10.0.0.2"))
	recorder.Wait(t, "the answer after it", webAt("10.0.0.2"))
	if n := recorder.View().Edits - edits; n != 1 && !stopped(recorder) {
		t.Errorf("%d edits, want that of the change", n)
	}
}
