package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/kube/clients"
	"isthmus.dev/isthmus/registries/registrytest"
)

// paced answers as an empty cluster does, in the time of a synctest bubble. Its
// fields may be changed while it serves.
type paced struct {
	mu      sync.Mutex
	silent  bool // no answer at all
	refuse  bool // no connection
	mute    bool // no answer to the second half of a probe, the version
	busy    bool // 429 to the canary
	version int
	service string // name of the only one; "" is none
	closes  bool   // every watch ends at once
	lists   int
	watches int
	probes  int
}

func (p *paced) set(change func(*paced)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
}

func (p *paced) counts() (lists, watches, probes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lists, p.watches, p.probes
}

const pacedItem = `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-system","uid":"u1","resourceVersion":"1"}}`

func (p *paced) RoundTrip(request *http.Request) (*http.Response, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	query := request.URL.Query()
	watching, probing, versions := query.Get("watch") != "", query.Get("limit") == "1", request.URL.Path == "/version"
	switch {
	case versions: // part of a probe
	case watching:
		p.watches++
	case probing:
		p.probes++
	default:
		p.lists++
	}
	switch {
	case p.refuse:
		return nil, errors.New("connection refused")
	case p.silent, p.mute && versions:
		p.mu.Unlock()
		<-request.Context().Done()
		p.mu.Lock()
		return nil, request.Context().Err()
	case probing && p.busy:
		return answer(http.StatusTooManyRequests,
			io.NopCloser(strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429}`))), nil
	case watching && p.closes:
		return answer(http.StatusOK, io.NopCloser(strings.NewReader(""))), nil
	case watching:
		seconds, err := time.ParseDuration(query.Get("timeoutSeconds") + "s")
		return answer(http.StatusOK, quiet{request.Context().Done(), time.NewTimer(seconds).C}), err
	}
	items := ""
	if strings.HasSuffix(request.URL.Path, "/namespaces") {
		items = pacedItem
	}
	if p.service != "" && strings.HasSuffix(request.URL.Path, "/services") {
		items = fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"suite","resourceVersion":"5"}}`, p.service)
	}
	return answer(http.StatusOK, io.NopCloser(strings.NewReader(fmt.Sprintf(`{"metadata":{"resourceVersion":"%d"},"items":[%s]}`,
		p.version, items)))), nil
}

func answer(status int, body io.ReadCloser) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: body}
}

// quiet is a watch on which nothing happens until the server ends it.
type quiet struct {
	done <-chan struct{}
	end  <-chan time.Time
}

func (q quiet) Read([]byte) (int, error) {
	select {
	case <-q.done:
		return 0, context.Canceled
	case <-q.end:
		return 0, io.EOF
	}
}

func (quiet) Close() error { return nil }

// elapse lets time pass in a synctest bubble.
func elapse(d time.Duration) { <-time.NewTimer(d).C }

func startPaced(t *testing.T, server *paced, change ...func(*Options)) (*Registry, *registrytest.Recorder) {
	t.Helper()
	client, err := clients.New(&rest.Config{Host: "http://cluster.test", Transport: server, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Cluster: "c1", Client: client}
	for _, c := range change {
		c(&o)
	}
	r, recorder := New(o), &registrytest.Recorder{}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx, recorder) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run says %v", err)
		}
		recorder.Check(t)
	})
	return r, recorder
}

// TestF40StaleWithin15s includes the server that falls silent in the middle of a probe:
// half of a probe is not a sign of life.
func TestF40StaleWithin15s(t *testing.T) {
	t.Run("Silent", func(t *testing.T) { staleWithin15s(t, func(p *paced) { p.silent = true }) })
	t.Run("InTheMiddleOfAProbe", func(t *testing.T) { staleWithin15s(t, func(p *paced) { p.mute = true }) })
}

func staleWithin15s(t *testing.T, fault func(*paced)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := &paced{version: 10}
		_, recorder := startPaced(t, server)
		recorder.WaitPhase(t, federation.Ready)
		server.set(fault)
		began := time.Now()
		recorder.WaitPhase(t, federation.Stale)
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("STALE after %v", took)
		}
		server.set(func(p *paced) { p.silent, p.mute = false, false })
		began = time.Now()
		recorder.WaitPhase(t, federation.Ready)
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("READY again after %v", took)
		}
		if n := recorder.View().Edits; n != 1 {
			t.Errorf("%d edits, want the first only", n)
		}
		if lists, _, _ := server.counts(); lists != int(kinds) {
			t.Errorf("%d lists: watches were not resumed at their versions", lists)
		}
	})
}

func TestF42AtMostOneTryASecond(t *testing.T) {
	for name, fault := range map[string]func(*paced){
		"WatchesEndAtOnce": func(p *paced) { p.closes = true },
		"Refused":          func(p *paced) { p.refuse = true },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &paced{version: 10}
				fault(server)
				_, recorder := startPaced(t, server)
				const minutes = 10
				elapse(minutes * time.Minute)
				lists, watches, probes := server.counts()
				if tries := lists + watches; tries > minutes*60+4*int(kinds) {
					t.Errorf("%d lists and watches in %d minutes", tries, minutes)
				}
				if probes < minutes*60/6 || probes > minutes*60 {
					t.Errorf("%d probes in %d minutes", probes, minutes)
				}
				if recorder.View().Status.Message == "" {
					t.Error("the status does not say what is wrong")
				}
				server.set(func(p *paced) { p.closes, p.refuse = false, false })
				recorder.WaitPhase(t, federation.Ready)
			})
		})
	}
}

// TestF46EventsThatNeverCame: the server holds something else than its watches
// said.
func TestF46EventsThatNeverCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &paced{version: 10, service: "old"}
		_, recorder := startPaced(t, server)
		recorder.WaitPhase(t, federation.Ready)
		server.set(func(p *paced) { p.service = "new" })
		elapse(5 * time.Minute)
		synctest.Wait()
		v := recorder.View()
		if v.Services[serviceKey("new")] == nil || v.Services[serviceKey("old")] != nil || v.Edits != 2 || !recorder.Edits()[1].Services.Full {
			t.Errorf("%d edits, services %v", v.Edits, v.Services)
		}
		elapse(time.Hour)
		if n := recorder.View().Edits; n != 2 {
			t.Errorf("%d edits though nothing changed any more", n-2)
		}
	})
}

func TestWatchesAreRenewedWithoutTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &paced{version: 10}
		_, recorder := startPaced(t, server, func(o *Options) { o.Reconcile = -1 })
		recorder.WaitPhase(t, federation.Ready)
		said := len(recorder.Statuses())
		elapse(time.Hour)
		if now := len(recorder.Statuses()); now != said {
			t.Errorf("%d statuses in a quiet hour", now-said)
		}
		if lists, watches, _ := server.counts(); lists != int(kinds) || watches < 5*int(kinds) || watches > 13*int(kinds) {
			t.Errorf("%d lists and %d watches in an hour", lists, watches)
		}
	})
}

// TestBusyServerKeepsItsWatches: a server that asks for patience is not asked
// for more.
func TestBusyServerKeepsItsWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &paced{version: 10}
		_, recorder := startPaced(t, server)
		recorder.WaitPhase(t, federation.Ready)
		_, before, _ := server.counts()
		server.set(func(p *paced) { p.busy = true })
		recorder.WaitPhase(t, federation.Stale)
		server.set(func(p *paced) { p.busy = false })
		recorder.WaitPhase(t, federation.Ready)
		if _, after, _ := server.counts(); after != before {
			t.Errorf("%d watches were reopened", after-before)
		}
	})
}

func TestF45VersionThatWentBackListsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &paced{version: 1000}
		_, recorder := startPaced(t, server)
		recorder.WaitPhase(t, federation.Ready)
		server.set(func(p *paced) { p.version = 900 })
		began := time.Now()
		recorder.Wait(t, "a second full edit", func(v registrytest.View) bool { return v.Edits == 2 })
		if took := time.Since(began); took > time.Minute {
			t.Errorf("it took %v", took)
		}
		if e := recorder.Edits()[1]; !e.Services.Full {
			t.Errorf("edit %+v", e)
		}
	})
}
