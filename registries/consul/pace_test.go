package consul

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/registries/registrytest"
)

// paced answers as a Consul with many services does, in the time of a synctest
// bubble. Each change has an index of its own.
type paced struct {
	services int

	mu      sync.Mutex
	silent  bool // no answer at all
	refuse  bool // no connection
	changes map[string]int
}

func (p *paced) set(change func(*paced)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
}

// state is the trouble and the index of a path.
func (p *paced) state(path string) (silent, refuse bool, index int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.silent, p.refuse, 1 + p.changes[path]
}

func (p *paced) RoundTrip(q *http.Request) (*http.Response, error) {
	ctx, path := q.Context(), q.URL.Path
	silent, refuse, index := p.state(path)
	if refuse {
		return nil, errors.New("connection refused")
	}
	httptrace.ContextClientTrace(ctx).WroteHeaders()
	if silent {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if q.URL.Query().Get("index") == fmt.Sprint(index) {
		wait, err := time.ParseDuration(q.URL.Query().Get("wait"))
		if err != nil {
			return nil, err
		}
		if !sleep(ctx, wait) {
			return nil, ctx.Err()
		}
		_, _, index = p.state(path)
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"X-Consul-Index": {fmt.Sprint(index)}},
		Body: io.NopCloser(strings.NewReader(p.body(path, index))),
	}, nil
}

func (p *paced) body(path string, index int) string {
	name, ok := strings.CutPrefix(path, "/v1/health/service/")
	if ok {
		return fmt.Sprintf(instanceJSON, name, name, fmt.Sprintf("10.0.0.%d", index))
	}
	names := []string{`"consul":[]`}
	for i := range p.services {
		names = append(names, fmt.Sprintf("%q:[]", numbered("web", i)))
	}
	return "{" + strings.Join(names, ",") + "}"
}

func startPaced(t *testing.T, server *paced) *registrytest.Recorder {
	t.Helper()
	registry, err := New(Options{Cluster: "c1", Address: "http://consul.test:8500"})
	if err != nil {
		t.Fatal(err)
	}
	registry.client.http.Transport = server
	heard := &registrytest.Recorder{}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- registry.Run(ctx, heard) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		heard.Check(t)
	})
	heard.WaitPhase(t, federation.Ready)
	return heard
}

func TestF67ServicesWithoutALongPollAreSeenWithin10s(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &paced{services: 300, changes: map[string]int{}}
		heard := startPaced(t, server)
		if got, want := heard.View().Status.Message, "147 of 300 services followed live, the rest within 10s"; got != want {
			t.Errorf("the status says %q, want %q", got, want)
		}
		for _, name := range []string{"web-299", "web-147", "web-222"} {
			began := time.Now()
			server.set(func(p *paced) { p.changes["/v1/health/service/"+name]++ })
			key := federation.ServiceKey{Hostname: federation.Hostname(name + ".service.consul")}
			heard.Wait(t, name, func(v registrytest.View) bool {
				return v.Services[key].Endpoints[0].Address.String() == "10.0.0.2"
			})
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("%s: seen after %v, want 10 s at most", name, took)
			}
		}
	})
}

func TestF68SilenceIsNoticedIn15sAndTheReturnIn5s(t *testing.T) {
	for name, fault := range map[string]func(*paced){
		"silent":  func(p *paced) { p.silent = true },
		"refused": func(p *paced) { p.refuse = true },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &paced{services: 3, changes: map[string]int{}}
				heard := startPaced(t, server)
				for _, outage := range []time.Duration{time.Second, time.Minute, time.Hour} {
					server.set(fault)
					began := time.Now()
					heard.WaitPhase(t, federation.Stale)
					if took := time.Since(began); took > 15*time.Second {
						t.Errorf("STALE after %v, want 15 s at most", took)
					}
					sleep(t.Context(), outage)
					server.set(func(p *paced) { p.silent, p.refuse = false, false })
					back := time.Now()
					heard.WaitPhase(t, federation.Ready)
					limit := 5 * time.Second
					if name == "silent" {
						limit += requestTimeout // of the request that is lost on its way
					}
					if took := time.Since(back); took > limit {
						t.Errorf("after %v: READY after %v, want %v at most", outage, took, limit)
					}
				}
				if n := heard.View().Edits; n != 4 {
					t.Errorf("%d edits, want the full one of each sync", n)
				}
			})
		})
	}
}
