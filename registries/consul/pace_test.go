package consul

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/retry"
	"isthmus.dev/isthmus/registries/registrytest"
)

// paced answers as a Consul with many services does, in the time of a synctest
// bubble. Each change has an index of its own.
type paced struct {
	services int

	mu       sync.Mutex
	silent   bool   // no answer at all
	voteless bool   // it is silent, but says that it has no leader
	refuse   bool   // no connection
	broken   string // the paths that begin so are answered with breaks
	breaks   func(*http.Request) *http.Response
	first    int            // the services below it are gone
	changes  map[string]int // of each path
	address  map[string]int // last number of a service's address, by path; default its index
	leader   string         // a long poll stays with the leader at its start
	changed  chan struct{}  // closed by the next change
}

func newPaced(services int) *paced {
	return &paced{services: services, changes: map[string]int{}, address: map[string]int{}, changed: make(chan struct{})}
}

func (p *paced) set(change func(*paced)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
	close(p.changed)
	p.changed = make(chan struct{})
}

// state is the trouble and the index of a path, and what tells of a change.
func (p *paced) state(path string) (silent, refuse bool, index int, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.silent, p.refuse, 1 + p.changes[path], p.changed
}

func (p *paced) leads() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.leader
}

func (p *paced) isVoteless() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.voteless
}

// block answers a long poll: the index, once it is another one or the wait is over.
func (p *paced) block(ctx context.Context, path, known, wait string) (int, error) {
	limit, err := time.ParseDuration(wait)
	timer := time.NewTimer(limit)
	defer timer.Stop()
	leader := p.leads()
	for err == nil {
		_, _, index, changed := p.state(path)
		if p.leads() != leader {
			<-ctx.Done()
			return 0, ctx.Err()
		}
		if known != fmt.Sprint(index) {
			return index, nil
		}
		select {
		case <-changed:
		case <-timer.C:
			return index, nil
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	return 0, err
}

func (p *paced) RoundTrip(q *http.Request) (*http.Response, error) {
	ctx, path := q.Context(), q.URL.Path
	silent, refuse, index, _ := p.state(path)
	if refuse {
		return nil, errors.New("connection refused")
	}
	httptrace.ContextClientTrace(ctx).WroteHeaders()
	if silent && (path != leaderPath || !p.isVoteless()) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if query := q.URL.Query(); query.Get("index") != "" {
		var err error
		index, err = p.block(ctx, path, query.Get("index"), query.Get("wait"))
		if err != nil {
			return nil, err
		}
	}
	if breaks := p.breaksAt(q); breaks != nil {
		return breaks(q), nil
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"X-Consul-Index": {fmt.Sprint(index)}},
		Body: io.NopCloser(strings.NewReader(p.body(path, index))),
	}, nil
}

// breaksAt returns what answers in the place of Consul. The reads of the proof, which
// have a filter, are not meant.
func (p *paced) breaksAt(q *http.Request) func(*http.Request) *http.Response {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken == "" || !strings.HasPrefix(q.URL.Path, p.broken) || q.URL.Query().Get("filter") != "" {
		return nil
	}
	return p.breaks
}

func (p *paced) body(path string, index int) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if path == leaderPath {
		return strconv.Quote(p.leader)
	}
	if name, ok := strings.CutPrefix(path, healthPath); ok {
		return fmt.Sprintf(instanceJSON, name, name, fmt.Sprintf("10.0.0.%d", cmp.Or(p.address[path], index)))
	}
	names := []string{`"consul":[]`}
	for i := p.first; i < p.services; i++ {
		names = append(names, fmt.Sprintf("%q:[]", numbered("web", i)))
	}
	return "{" + strings.Join(names, ",") + "}"
}

const healthPath = "/v1/health/service/"

func addressIs(name, address string) func(registrytest.View) bool {
	key := federation.ServiceKey{Hostname: federation.Hostname(name + ".service.consul")}
	return func(v registrytest.View) bool {
		s := v.Services[key]
		return s != nil && s.Endpoints[0].Address.String() == address
	}
}

func startPaced(t *testing.T, server *paced) *registrytest.Recorder {
	t.Helper()
	registry, err := New(Options{Cluster: "c1", Address: "http://consul.test:8500"})
	if err != nil {
		t.Fatal(err)
	}
	registry.client.http.Transport = server
	recorder := heardOf(t, registry)
	recorder.WaitPhase(t, federation.Ready)
	return recorder
}

func TestF67ServicesWithoutALongPollAreSeenWithin10s(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newPaced(300)
		recorder := startPaced(t, server)
		if got, want := recorder.View().Status.Message, "144 of 300 services followed live, the rest within 10s"; got != want {
			t.Errorf("the status says %q, want %q", got, want)
		}
		for _, name := range []string{"web-299", "web-144", "web-222"} {
			began := time.Now()
			server.set(func(p *paced) { p.changes[healthPath+name]++ })
			recorder.Wait(t, name, addressIs(name, "10.0.0.2"))
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("%s: seen after %v, want 10 s at most", name, took)
			}
		}
	})
}

// TestServiceThatGetsALongPollIsReadAnew: its last answer by a long poll is an
// old one, which it may have come back to.
func TestServiceThatGetsALongPollIsReadAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const name = "web-144" // the first one without a long poll
		server := newPaced(300)
		recorder := startPaced(t, server)
		server.set(func(p *paced) { p.changes[healthPath+name]++ })
		recorder.Wait(t, "its change", addressIs(name, "10.0.0.2"))
		server.set(func(p *paced) {
			p.changes[healthPath+name]++
			p.address[healthPath+name] = 1
			p.first, p.changes["/v1/catalog/services"] = 1, 1
		})
		recorder.Wait(t, "the end of web-000", func(v registrytest.View) bool { return len(v.Services) == 299 })
		recorder.Wait(t, "the address as it was at first", addressIs(name, "10.0.0.1"))
	})
}

func TestF68SilenceIsNoticedIn15sAndTheReturnIn5s(t *testing.T) {
	for name, fault := range map[string]func(*paced){
		"silent":  func(p *paced) { p.silent = true },
		"refused": func(p *paced) { p.refuse = true },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newPaced(3)
				recorder := startPaced(t, server)
				for _, outage := range []time.Duration{time.Second, time.Minute, time.Hour} {
					server.set(fault)
					began := time.Now()
					recorder.WaitPhase(t, federation.Stale)
					if took := time.Since(began); took > 15*time.Second {
						t.Errorf("STALE after %v, want 15 s at most", took)
					}
					retry.Sleep(t.Context(), outage)
					server.set(func(p *paced) { p.silent, p.refuse = false, false })
					back := time.Now()
					recorder.WaitPhase(t, federation.Ready)
					limit := 5 * time.Second
					if name == "silent" {
						limit += requestTimeout // of the request that is lost on its way
					}
					if took := time.Since(back); took > limit {
						t.Errorf("after %v: READY after %v, want %v at most", outage, took, limit)
					}
				}
				if n := recorder.View().Edits; n != 4 {
					t.Errorf("%d edits, want the full one of each sync", n)
				}
			})
		})
	}
}

// TestF68LongPollsDoNotStayWithAFrozenLeader: the next leader answers all new reads, so that
// Consul proves to be in order.
func TestF68LongPollsDoNotStayWithAFrozenLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newPaced(4)
		server.first, server.leader = 1, "10.0.0.101:8300"
		recorder := startPaced(t, server)
		synctest.Wait() // the long polls are under way
		server.set(func(p *paced) {
			p.leader = "10.0.0.102:8300"
			p.first, p.changes[servicesPath] = 0, 1
			p.changes[healthPath+"web-001"]++
		})
		began := time.Now()
		recorder.Wait(t, "a changed service", addressIs("web-001", "10.0.0.2"))
		recorder.Wait(t, "a new service", addressIs("web-000", "10.0.0.1"))
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("seen after %v, want 10 s at most", took)
		}
		edits := recorder.View().Edits
		retry.Sleep(t.Context(), time.Minute)
		if more := recorder.View().Edits - edits; more != 0 {
			t.Errorf("%d edits without a change, want none", more)
		}
	})
}

// byBytes is a body that comes byte by byte, one a second, without end.
type byBytes struct{ ended <-chan struct{} }

func (b byBytes) Read(p []byte) (int, error) {
	second := time.NewTimer(time.Second)
	defer second.Stop()
	select {
	case <-second.C:
		p[0] = ' '
		return 1, nil
	case <-b.ended:
		return 0, context.Canceled
	}
}

func (byBytes) Close() error { return nil }

// TestF67SlowAnswersDoNotHoldUpOtherServices: an answer that comes byte by byte is abandoned
// after 4 s, and as many services are read at once.
func TestF67SlowAnswersDoNotHoldUpOtherServices(t *testing.T) {
	for slow, limit := range map[string]time.Duration{"web-299": 10 * time.Second, "web-29": 20 * time.Second} {
		t.Run(slow, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newPaced(300)
				recorder := startPaced(t, server)
				server.set(func(p *paced) {
					p.broken, p.breaks = healthPath+slow, func(q *http.Request) *http.Response {
						return &http.Response{StatusCode: http.StatusOK, Body: byBytes{q.Context().Done()}}
					}
				})
				recorder.Wait(t, "a problem", func(v registrytest.View) bool { return len(v.Problems) > 0 })
				for _, name := range []string{"web-289", "web-144", "web-222"} {
					began := time.Now()
					server.set(func(p *paced) { p.changes[healthPath+name]++ })
					recorder.Wait(t, name, addressIs(name, "10.0.0.2"))
					if took := time.Since(began); took > limit {
						t.Errorf("%s: seen after %v, want %v at most", name, took, limit)
					}
				}
			})
		})
	}
}

// TestAnAnswerThatMakesProgressIsWaitedFor: 320 KiB that take 10 s.
func TestAnAnswerThatMakesProgressIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newPaced(3)
		recorder := startPaced(t, server)
		server.set(func(p *paced) {
			p.broken = healthPath + "web-001"
			p.changes[p.broken]++
			p.breaks = func(*http.Request) *http.Response {
				answer := fmt.Sprintf(instanceJSON, "web-001", "web-001", "10.0.0.9")
				return &http.Response{
					StatusCode: http.StatusOK, Header: http.Header{"X-Consul-Index": {"2"}},
					Body: io.NopCloser(io.MultiReader(&slowly{left: 5}, strings.NewReader(answer))),
				}
			}
		})
		recorder.Wait(t, "the answer", addressIs("web-001", "10.0.0.9"))
	})
}

// slowly is a body of 64 KiB of spaces every 2 s.
type slowly struct{ left, ready int }

func (s *slowly) Read(p []byte) (int, error) {
	if s.ready == 0 {
		if s.left == 0 {
			return 0, io.EOF
		}
		retry.Sleep(context.Background(), 2*time.Second)
		s.left, s.ready = s.left-1, progressSize
	}
	n := min(len(p), s.ready)
	s.ready -= n
	for i := range n {
		p[i] = ' '
	}
	return n, nil
}

// TestR06ADatacenterBeyondItsLimitsIsReadMoreAndMoreRarely: each try reads nearly all that
// fits, and takes 20 s here.
func TestR06ADatacenterBeyondItsLimitsIsReadMoreAndMoreRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newPaced(300)
		server.broken, server.breaks = healthPath, func(q *http.Request) *http.Response {
			name := strings.TrimPrefix(q.URL.Path, healthPath)
			if name != canaryService {
				retry.Sleep(q.Context(), time.Second/2)
			}
			return &http.Response{
				StatusCode: http.StatusOK,
				Body:       io.NopCloser(strings.NewReader(fmt.Sprintf(instanceJSON, name, name, "10.0.0.1"))),
			}
		}
		var lists, reads atomic.Int64
		registry, err := New(Options{
			Cluster: "c1", Address: "http://consul.test:8500", Limits: federation.Limits{Objects: 500},
			Count: func(kind string) {
				switch kind {
				case CountServices:
					lists.Add(1)
				case CountHealth:
					reads.Add(1)
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		registry.client.http.Transport = server
		recorder := heardOf(t, registry)
		recorder.WaitPhase(t, federation.Failed)
		if n := reads.Load(); n > 250+readers {
			t.Errorf("%d services were read, although 250 are the limit", n)
		}
		retry.Sleep(t.Context(), time.Hour)
		if n := lists.Load(); n > 30 {
			t.Errorf("%d tries within an hour, want 30 at most", n)
		}
		t.Logf("%d tries and %d reads of services within an hour", lists.Load(), reads.Load())
		server.set(func(p *paced) { p.first = 200 })
		retry.Sleep(t.Context(), longestLimited*5/4)
		recorder.WaitPhase(t, federation.Ready)
	})
}
