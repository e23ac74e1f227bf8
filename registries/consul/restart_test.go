package consul

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/registries"
	"isthmus.dev/isthmus/registries/provider"
)

// faulty is a Consul of which some paths are answered with an error.
type faulty struct {
	http.Handler
	mu     sync.Mutex
	paths  []string
	status int
}

func (f *faulty) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	f.mu.Lock()
	broken, status := slices.Contains(f.paths, q.URL.Path), f.status
	f.mu.Unlock()
	if broken {
		w.WriteHeader(status)
		return
	}
	f.Handler.ServeHTTP(w, q)
}

// fail has the health of these services alone answered with 500.
func (f *faulty) fail(services ...string) { f.answer(http.StatusInternalServerError, services...) }

func (f *faulty) answer(status int, services ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.paths, f.status = nil, status
	for _, name := range services {
		f.paths = append(f.paths, healthPath+name)
	}
}

// startFaulty is the way to the rig's Consul.
func startFaulty(t *testing.T, r *rig) (f *faulty, address string) {
	t.Helper()
	to, err := url.Parse(r.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	f = &faulty{Handler: proxy}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return f, server.URL
}

// supervised is a hub that follows one Consul and has a folder for its last known good state.
type supervised struct {
	*registries.Supervisor
	*federation.Aggregate
	dir     string
	address string
}

// start runs the hub until stop is called, and knows of Consul what is in the folder.
func (h *supervised) start(t *testing.T) (stop func()) {
	t.Helper()
	h.Aggregate = federation.NewAggregate(nil)
	h.Supervisor = registries.New(registries.Options{Aggregate: h.Aggregate, Dir: h.dir, Grace: time.Hour})
	h.Attach(registries.Cluster{
		ID: "c1", Spec: federation.ClusterSpec{Provider: federation.Consul},
		Open: func(known federation.ClusterIdentity) (registries.Registry, error) {
			r, err := New(Options{Cluster: "c1", Address: h.address, Expect: known.UID, Wait: time.Second})
			if err != nil {
				return nil, err
			}
			return provider.Running{Active: r.Activity, Do: func(ctx context.Context, to registries.Sink) error { return r.Run(ctx, to) }}, nil
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// seen is what the hub shows: endpoints of services, the names of workloads, and problems.
type seen struct {
	endpoints map[string]int
	workloads []string
	problems  []federation.Problem
	status    federation.RegistryStatus
}

func (h *supervised) seen() seen {
	s := h.Latest()
	said := s.Contribution(federation.ShardKey{Cluster: "c1", Provider: federation.Consul})
	out := seen{endpoints: map[string]int{}, problems: slices.Collect(s.Problems("c1"))}
	for key, shard := range said.Services.Set {
		out.endpoints[strings.TrimSuffix(string(key.Hostname), ".service.consul")] = len(shard.Endpoints)
	}
	for key := range said.Workloads.Set {
		out.workloads = append(out.workloads, key.Name)
	}
	slices.Sort(out.workloads)
	if c, ok := s.Cluster("c1"); ok {
		out.status = c.Status
	}
	return out
}

// wait waits until the hub shows that, and returns what it showed then.
func (h *supervised) wait(t *testing.T, what string, is func(seen) bool) (s seen) {
	t.Helper()
	until(t, what, func() bool {
		s = h.seen()
		return is(s)
	})
	return s
}

// TestR84AServiceThatCannotBeReadAtARestartStays: the hub is restarted while the health of one service is answered with 500. That
// service stays as it was on disk, with what its tags make and its workloads; one that was never known is absent. All others are read,
// the status names both, and all of it heals by itself.
func TestR84AServiceThatCannotBeReadAtARestartStays(t *testing.T) {
	t.Parallel()
	r := startRig(t, testbed.ConsulOptions{}, Options{})
	f, address := startFaulty(t, r)
	h := &supervised{dir: t.TempDir(), address: address}
	r.register("web", "web-1", "10.0.0.1", 80, map[string]any{"Tags": []string{"live"}})
	r.register("web", "web-2", "10.0.0.2", 80)
	r.register("db", "db-1", "10.0.0.3", 80)
	r.register("late", "late-1", "10.0.0.8", 80)
	r.register("late", "late-2", "10.0.0.9", 80)
	stop := h.start(t)
	all := map[string]int{"web": 2, "live.web": 1, "db": 1, "late": 2}
	h.wait(t, "the first list", func(s seen) bool { return s.status.Phase == federation.Ready && maps.Equal(s.endpoints, all) })
	stop() // writes the state

	f.fail("web", "late", "new")
	r.register("db", "db-2", "10.0.0.4", 80)
	r.register("new", "new-1", "10.0.0.5", 80)
	r.register("other", "other-1", "10.0.0.6", 80)
	r.register("more", "more-1", "10.0.0.7", 80)
	stop = h.start(t)
	s := h.wait(t, "the list without the services that fail",
		func(s seen) bool { return s.status.Phase == federation.Ready && s.status.Message != "" })
	all["db"], all["other"], all["more"] = 2, 1, 1
	if !maps.Equal(s.endpoints, all) || len(s.workloads) != 8 {
		t.Errorf("the hub has %v and %v, want %v", s.endpoints, s.workloads, all)
	}
	for _, name := range []string{"web", "late", "new"} {
		if !strings.Contains(s.status.Message, name+" (reading from consul: it answers 500; Consul's log says why)") {
			t.Errorf("the status says %q, want service %s and the reason", s.status.Message, name)
		}
		if !slices.ContainsFunc(s.problems, func(p federation.Problem) bool { return p.Code == codeUnreadable && p.Object == "Service "+name }) {
			t.Errorf("the problems are %v, want one of service %s", s.problems, name)
		}
	}

	r.deregister("web-1")
	r.deregister("late-1")
	r.deregister("late-2")
	h.wait(t, "the end of a service that could not be read", func(s seen) bool { return s.endpoints["late"] == 0 && s.endpoints["web"] == 2 })
	f.fail()
	s = h.wait(t, "what Consul has", func(s seen) bool { return s.endpoints["web"] == 1 && s.endpoints["new"] == 1 })
	if want := map[string]int{"web": 1, "db": 2, "other": 1, "more": 1, "new": 1}; !maps.Equal(s.endpoints, want) || len(s.workloads) != 6 {
		t.Errorf("after all was read the hub has %v and %v, want %v", s.endpoints, s.workloads, want)
	}
	h.wait(t, "the end of the problems", func(s seen) bool { return len(s.problems) == 0 && s.status.Message == "" })
	stop()
}

// TestR84OneServiceThatFailsDoesNotFailTheFirstSync: the answer about one service is 500, or never comes, and Consul is not known from
// before. Where most fail, Consul is in trouble.
func TestR84OneServiceThatFailsDoesNotFailTheFirstSync(t *testing.T) {
	t.Parallel()
	r := startRig(t, testbed.ConsulOptions{}, Options{})
	f, address := startFaulty(t, r)
	for i, name := range []string{"web", "db", "api"} {
		r.register(name, name+"-1", fmt.Sprintf("10.0.0.%d", i+1), 80)
	}
	h := &supervised{dir: t.TempDir(), address: address}
	f.fail("web", "db")
	h.start(t)
	s := h.wait(t, "why nothing is read", func(s seen) bool {
		return s.status.Phase == federation.Stale && strings.Contains(s.status.Message, "2 services cannot be read")
	})
	if len(s.endpoints) > 0 {
		t.Errorf("the status is %+v with %v", s.status, s.endpoints)
	}
	f.fail("web")
	s = h.wait(t, "the first list", func(s seen) bool { return s.status.Phase == federation.Ready && s.status.Message != "" })
	if want := map[string]int{"db": 1, "api": 1}; !maps.Equal(s.endpoints, want) || !strings.Contains(s.status.Message, "web (") {
		t.Errorf("the hub has %v and says %q, want %v and why web is absent", s.endpoints, s.status.Message, want)
	}
	f.fail()
	h.wait(t, "the service", func(s seen) bool { return s.endpoints["web"] == 1 && len(s.problems) == 0 && s.status.Message == "" })
}
