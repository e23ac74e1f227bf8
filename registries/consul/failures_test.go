package consul

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/registries/registrytest"
)

// dripping is a body that never ends.
type dripping struct {
	ended <-chan struct{} // with the request
}

func (d dripping) Read([]byte) (int, error) {
	<-d.ended
	return 0, context.Canceled
}

func (dripping) Close() error { return nil }

// failed are answers whose trouble may pass at any time, and what is to be reported about them.
var failed = map[string]struct {
	answer func(*http.Request) *http.Response
	says   string
}{
	"401": {answers(http.StatusUnauthorized), "consul answers 401"},
	"403": {answers(http.StatusForbidden), "consul answers 403"},
	"302": {answers(http.StatusFound), "consul answers 302, a redirect"},
	"429": {answers(http.StatusTooManyRequests), "consul answers 429"},
	"500": {answers(http.StatusInternalServerError), "it answers 500"},
	"cut": {func(*http.Request) *http.Response {
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(io.MultiReader(strings.NewReader("["), cutOff{}))}
	}, "unexpected EOF"},
	"dripping": {func(q *http.Request) *http.Response {
		return &http.Response{StatusCode: http.StatusOK, Body: dripping{q.Context().Done()}}
	}, "not complete after 4s"},
}

func answers(status int) func(*http.Request) *http.Response {
	return func(*http.Request) *http.Response {
		return &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody}
	}
}

type cutOff struct{}

func (cutOff) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// TestF40AServiceThatCannotBeReadIsReported: Consul proves to be in order, and only
// the reads of one service fail, be it followed by a long poll or read in turn. All other
// services are followed as before.
func TestF40AServiceThatCannotBeReadIsReported(t *testing.T) {
	for kind, c := range failed {
		for _, name := range []string{"web-000", "web-299"} {
			t.Run(kind+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					server := newPaced(300)
					recorder := startPaced(t, server)
					server.set(func(p *paced) { p.broken, p.breaks = healthPath+name, c.answer; p.changes[p.broken]++ })
					v := recorder.Wait(t, "a problem", func(v registrytest.View) bool { return len(v.Problems) > 0 })
					for _, p := range v.Problems {
						if p.Code != "UNREADABLE" || p.Object != "Service "+name || !strings.Contains(p.Message, c.says) {
							t.Errorf("the problem is %+v, want one of %s that says %q", p, name, c.says)
						}
					}
					if !addressIs(name, "10.0.0.1")(v) || v.Status.Phase != federation.Ready {
						t.Errorf("of %d services, %s is not as before, and the cluster is %s", len(v.Services), name, v.Status.Phase)
					}
					server.set(func(p *paced) { p.changes[healthPath+"web-001"]++ })
					v = recorder.Wait(t, "a change of another service", addressIs("web-001", "10.0.0.2"))
					if want := "144 of 300 services followed live, the rest within 10s"; !strings.HasPrefix(v.Status.Message, want) {
						t.Errorf("the status says %q, want %q", v.Status.Message, want)
					}
					if len(recorder.Statuses()) > 4 {
						t.Errorf("the statuses were %+v, want that only the service is reported", recorder.Statuses())
					}
					server.set(func(p *paced) { p.broken = "" })
					recorder.Wait(t, "the end of the problem", func(v registrytest.View) bool {
						return len(v.Problems) == 0 && addressIs(name, "10.0.0.2")(v)
					})
				})
			})
		}
	}
}

// TestF40AListThatCannotBeReadIsReported: without the list no new service is seen.
func TestF40AListThatCannotBeReadIsReported(t *testing.T) {
	for kind, c := range failed {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newPaced(3)
				recorder := startPaced(t, server)
				server.set(func(p *paced) { p.broken, p.breaks = servicesPath, c.answer; p.changes[p.broken]++ })
				v := recorder.WaitPhase(t, federation.Stale)
				if !strings.Contains(v.Status.Message, c.says) || len(v.Services) != 3 {
					t.Errorf("the status of %d services says %q, want %q", len(v.Services), v.Status.Message, c.says)
				}
				server.set(func(p *paced) { p.broken = "" })
				recorder.WaitPhase(t, federation.Ready)
			})
		})
	}
}

// TestF40ALeaderThatIsMissingIsNamed: servers without a leader hold requests for longer than
// the hub waits, and say at once that they have none.
func TestF40ALeaderThatIsMissingIsNamed(t *testing.T) {
	for voteless, says := range map[bool]string{true: "its servers have no leader", false: "no answer within 4s"} {
		synctest.Test(t, func(t *testing.T) {
			server := newPaced(3)
			recorder := startPaced(t, server)
			began := time.Now()
			server.set(func(p *paced) { p.silent, p.voteless = true, voteless })
			v := recorder.WaitPhase(t, federation.Stale)
			if !strings.Contains(v.Status.Message, says) {
				t.Errorf("a silent Consul that says that it has no leader (%t) is %q, want %q", voteless, v.Status.Message, says)
			}
			if took := time.Since(began); took > 15*time.Second {
				t.Errorf("the silence was reported after %s", took)
			}
			server.set(func(p *paced) { p.silent = false })
			recorder.WaitPhase(t, federation.Ready)
		})
	}
}

// TestErrorsOfAgentsSayWhatIsWrong: an agent answers 500 for all that is wrong behind it. What
// it says in the body is told apart, and never repeated.
func TestErrorsOfAgentsSayWhatIsWrong(t *testing.T) {
	for body, want := range map[string]string{
		"No cluster leader": "its servers have no leader; the logs of the servers say why",
		"rpc error making call: Raft leader not found in server lookup mapping":                             "its servers have no leader; the logs of the servers say why",
		"Not ready to serve consistent reads":                                                               "its servers have no leader; the logs of the servers say why",
		"No known Consul servers":                                                                           "the agent knows no server of its datacenter; let it join one (retry_join)",
		"rpc error getting client: failed to get conn: dial tcp 10.0.0.1:8300: connect: connection refused": "the agent cannot reach the servers of its datacenter; its log says why",
		"something secret": "it answers 500; Consul's log says why",
	} {
		err := (&client{}).status(&http.Response{StatusCode: http.StatusInternalServerError, Body: io.NopCloser(strings.NewReader(body))})
		if err.Error() != "reading from consul: "+want {
			t.Errorf("the answer 500 %q is %q, want %q", body, err, want)
		}
	}
}

// TestR84OneProofCountsForManyFailures: a third of the services fail in a sync, and the source is proven at its
// beginning and end, not for each of them.
func TestR84OneProofCountsForManyFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newPaced(300)
		server.broken, server.breaks = healthPath+"web-0", answers(http.StatusInternalServerError)
		var proofs atomic.Int64
		registry, err := New(Options{Cluster: "c1", Address: "http://consul.test:8500", Count: func(kind string) {
			if kind == CountCanary {
				proofs.Add(1)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		registry.client.http.Transport = server
		s := newSyncer(registry, &registrytest.Recorder{})
		if err := s.sync(t.Context()); err != nil || len(s.model.odd) != 100 {
			t.Fatalf("the sync ended with %v and %d services that cannot be read, want 100", err, len(s.model.odd))
		}
		if n, want := int(proofs.Load()), 2+len(tables)+1; n != want { // two proofs, the tables' indexes, the leader
			t.Errorf("%d requests of proofs, want %d", n, want)
		}
	})
}
