package access

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	authenticationv1 "k8s.io/api/authentication/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/kube/clients"
	"isthmus.dev/isthmus/internal/kube/listwatch/listwatchtest"
)

// reviewer answers reviews and counts them: how often a real API server is asked
// cannot be seen from outside.
type reviewer struct {
	clients.Interface
	mu     sync.Mutex
	asked  int
	accept bool
	gate   chan struct{} // reviews wait for it
}

func newReviewer(t *testing.T, accept bool) *reviewer {
	t.Helper()
	server := listwatchtest.New("u1")
	r := &reviewer{Interface: server.Client(t), accept: accept, gate: make(chan struct{})}
	close(r.gate)
	server.Review(func(string) authenticationv1.TokenReviewStatus {
		r.mu.Lock()
		r.asked++
		yes, gate := r.accept, r.gate
		r.mu.Unlock()
		<-gate
		return authenticationv1.TokenReviewStatus{
			Authenticated: yes, Audiences: []string{"isthmus"}, User: authenticationv1.UserInfo{Username: "system:serviceaccount:shop:web"},
		}
	})
	return r
}

func (r *reviewer) reviews() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked
}

func reviewed(t *testing.T, accept bool) (*fixture, *reviewer) {
	w, r := newFixture(map[federation.ClusterID]AttachState{"c1": {Attached: true, UID: "u1"}}), newReviewer(t, accept)
	w.attach(t, "c1", r)
	return w, r
}

// A token may name its cluster by an alias: it is proven to be of that cluster.
func TestR48ATokenNamesItsClusterByAnAlias(t *testing.T) {
	w, _ := reviewed(t, true)
	w.named = map[federation.ClusterID]federation.ClusterID{"Kubernetes": "c1"}
	i, err := w.Identify(call{token: forged("isthmus", w.now.Add(time.Hour)), cluster: "Kubernetes"}.context(t))
	if home, _ := w.CertificateCluster(i); err != nil || home != "c1" {
		t.Errorf("it is of %q, %v", home, err)
	}
	if _, err := w.Identify(call{
		token:   forged("isthmus", w.now.Add(time.Hour)),
		cluster: "kubernetes",
	}.context(t)); status.Code(err) != codes.Unauthenticated {
		t.Errorf("a name of no cluster: %v", err)
	}
}

// Good answers are remembered for at most 5 minutes, bad ones for one, and none
// after the cluster was attached again (S23).
func TestS23AnswersAreRememberedBriefly(t *testing.T) {
	for accept, limit := range map[bool]time.Duration{true: 5 * time.Minute, false: time.Minute} {
		w, r := reviewed(t, accept)
		c := call{token: forged("isthmus", w.now.Add(time.Hour)), cluster: "c1"}
		want := map[bool]codes.Code{true: codes.OK, false: codes.Unauthenticated}[accept]
		ask := func(reviews int, when string) {
			t.Helper()
			if _, err := w.Identify(c.context(t)); status.Code(err) != want || r.reviews() != reviews {
				t.Errorf("%s: %v after %d reviews, want %d", when, err, r.reviews(), reviews)
			}
		}
		ask(1, "first")
		w.now = w.now.Add(limit - time.Second)
		ask(1, "before the limit")
		w.now = w.now.Add(time.Second)
		ask(2, "at the limit")
		w.attach(t, "c1", r)
		ask(3, "after it was attached again")
	}
}

func TestATokenThatEndsIsForgotten(t *testing.T) {
	w, r := reviewed(t, true)
	c := call{token: forged("isthmus", w.now.Add(time.Minute)), cluster: "c1"}
	if _, err := w.Identify(c.context(t)); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(2 * time.Minute)
	if _, err := w.Identify(c.context(t)); status.Code(err) != codes.Unauthenticated || r.reviews() != 1 {
		t.Errorf("after its end: %v, %d reviews", err, r.reviews())
	}
}

func TestManyWhoAskTheSameCostOneReview(t *testing.T) {
	w, r := reviewed(t, true)
	r.gate = make(chan struct{})
	c := call{token: forged("isthmus", w.now.Add(time.Hour)), cluster: "c1"}
	var group sync.WaitGroup
	for range 50 {
		ctx := c.context(t)
		group.Go(func() {
			if _, err := w.Identify(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	await(t, "the review", func() bool { return r.reviews() > 0 })
	close(r.gate)
	group.Wait()
	if n := r.reviews(); n > 2 { // one that came after the end of the first may begin another
		t.Errorf("%d reviews", n)
	}
}

// A source whose tokens are refused has to wait (S10); what is known to be good
// still counts.
func TestS10SourcesThatFailHaveToWait(t *testing.T) {
	w, r := reviewed(t, true)
	good := call{token: forged("isthmus", w.now.Add(time.Hour)), cluster: "c1"}
	if _, err := w.Identify(good.context(t)); err != nil {
		t.Fatal(err)
	}
	r.accept = false
	for i := range 30 {
		_, err := w.Identify(call{token: forged("isthmus", w.now.Add(time.Duration(i+1)*time.Minute)), cluster: "c1"}.context(t))
		if want := map[bool]codes.Code{true: codes.Unauthenticated, false: codes.ResourceExhausted}[i < failures]; status.Code(err) != want {
			t.Errorf("attempt %d: %v", i, err)
		}
	}
	if n := r.reviews(); n != 1+failures {
		t.Errorf("%d reviews", n)
	}
	if _, err := w.Identify(good.context(t)); err != nil {
		t.Errorf("a good token from there: %v", err)
	}
	w.now = w.now.Add(time.Minute)
	if _, err := w.Identify(call{
		token:   forged("isthmus", w.now.Add(time.Hour)),
		cluster: "c1",
	}.context(t)); status.Code(err) != codes.Unauthenticated {
		t.Errorf("a minute later: %v", err)
	}
	if w.counted["token throttled"] != 20 || w.counted["token refused"] != 11 || w.counted["token proven"] != 2 {
		t.Errorf("counted %v", w.counted)
	}
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	w, r := reviewed(t, true)
	for i := range maxRemembered + 10 {
		w.tokens.remember(ask("c1", Token(fmt.Sprint(i))), answer{cluster: "c1", until: w.now.Add(time.Minute)}, w.tokens.clients["c1"])
	}
	if n := len(w.tokens.known); n > maxRemembered || r.reviews() != 0 {
		t.Errorf("%d are remembered", n)
	}
}

func TestTokensPrintAsRedacted(t *testing.T) {
	canary := Token("canary")
	text, err := canary.MarshalText()
	if said := fmt.Sprintf("%v %s %q %x %#v %s", canary, canary, canary, canary, struct{ T Token }{canary}, text); err != nil ||
		strings.Contains(said, "canary") || strings.Contains(said, "63616e617279") {
		t.Errorf("it prints %s, %v", said, err)
	}
}

func FuzzToken(f *testing.F) {
	f.Add(string(forged("isthmus", time.Unix(1<<31, 0))))
	f.Add("e30.eyJhdWQiOlsiYSIsImIiXSwiZXhwIjoxZTMwMH0.c2ln")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Token(text).read()
		if err != nil {
			return
		}
		if c.check([]string{"isthmus"}, time.Unix(0, 0)) == nil && !c.ends().After(time.Unix(0, 0)) {
			t.Errorf("%q has ended and is taken", text)
		}
	})
}
