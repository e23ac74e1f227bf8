package access

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/kube/clients"
)

// slowReviewer is an API server that takes 10 ms for a review, and accepts one token.
type slowReviewer struct {
	mu     sync.Mutex
	good   Token
	asked  int
	become func() (uid string, err error) // nil: it is u1; no UID: it refuses the hub
}

func kubeSystem(uid string) corev1.NamespaceList {
	return corev1.NamespaceList{
		TypeMeta: metav1.TypeMeta{Kind: "NamespaceList", APIVersion: "v1"},
		Items:    []corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: types.UID(uid)}}},
	}
}

func (s *slowReviewer) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	become := s.become
	s.mu.Unlock()
	uid, err := "u1", error(nil)
	if become != nil {
		uid, err = become()
	}
	if err != nil {
		return nil, err
	}
	if uid == "" {
		return &http.Response{StatusCode: http.StatusUnauthorized, Body: http.NoBody, Request: r}, nil
	}
	var answer any = kubeSystem(uid)
	if r.Method == http.MethodPost {
		review := authenticationv1.TokenReview{}
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			return nil, err
		}
		timer := time.NewTimer(10 * time.Millisecond)
		<-timer.C
		answer = s.review(Token(review.Spec.Token))
	}
	body, err := json.Marshal(answer)
	header := http.Header{"Content-Type": {"application/json"}}
	return &http.Response{StatusCode: http.StatusOK, Header: header, Body: io.NopCloser(bytes.NewReader(body)), Request: r}, err
}

func (s *slowReviewer) review(token Token) authenticationv1.TokenReview {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	status := authenticationv1.TokenReviewStatus{Authenticated: token == s.good, Audiences: []string{"isthmus"}}
	status.User.Username = "system:serviceaccount:shop:web"
	return authenticationv1.TokenReview{TypeMeta: metav1.TypeMeta{Kind: "TokenReview", APIVersion: "authentication.k8s.io/v1"}, Status: status}
}

func floodedFixture(t *testing.T) (*fixture, *slowReviewer) {
	w, s := newFixture(map[federation.ClusterID]AttachState{"c1": {Attached: true, UID: "u1"}}), &slowReviewer{}
	client, err := clients.With(&rest.Config{
		Host: "http://c1", QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: "application/json"},
	}, &http.Client{Transport: s})
	if err != nil {
		t.Fatal(err)
	}
	w.attach(t, "c1", client)
	return w, s
}

// TestR09FloodOfForgedTokens: one address shows 1,000 forged tokens at once. They all came before the first was refused,
// but only as many are reviewed as may fail, and the token of a pod at another address does not wait for them.
func TestR09FloodOfForgedTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := floodedFixture(t)
		ends := time.Now().Add(time.Hour)
		w.now, s.good = time.Now(), claimed("good", ends)
		var all sync.WaitGroup
		for i := range 1000 {
			all.Go(func() {
				err := w.identifyFrom(t, "10.0.0.1", "c1", claimed(fmt.Sprint("forged-", i), ends))
				if code := status.Code(err); code != codes.Unauthenticated && code != codes.ResourceExhausted {
					t.Errorf("a forged token: %s", err)
				}
			})
		}
		synctest.Wait()
		began := time.Now()
		if err := w.identifyFrom(t, "10.0.0.2", "c1", s.good); err != nil {
			t.Errorf("a pod at another address: %v", err)
		}
		if waited := time.Since(began); waited > 30*time.Millisecond {
			t.Errorf("a pod at another address waited %s, for more than two rounds of reviews", waited)
		}
		all.Wait()
		if n := s.asked; n < failuresSource || n > failuresSource+maxReviews {
			t.Errorf("%d tokens were reviewed", n)
		}
	})
}

// TestR09CallersThatDoNotWait: a caller whose calls end before its tokens were reviewed is refused in the end, too.
func TestR09CallersThatDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := floodedFixture(t)
		w.now = time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for i := range 100 {
			who := netip.MustParseAddr("10.0.0.1")
			_, _ = w.tokens.check(ctx, who, "c1", claimed("bad", time.Now().Add(time.Hour+time.Duration(i)*time.Minute)))
			synctest.Wait()
			timer := time.NewTimer(20 * time.Millisecond)
			<-timer.C
		}
		if n := s.asked; n != failures {
			t.Errorf("%d tokens of one pod were reviewed, want %d", n, failures)
		}
	})
}

// TestR09FullQueue: when too many reviews wait, the longest line loses its last place.
func TestR09FullQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1)
		flood, other := netip.MustParsePrefix("10.0.0.1/32"), netip.MustParsePrefix("10.0.0.2/32")
		if err := q.take(t.Context(), flood, time.Second); err != nil {
			t.Fatal(err)
		}
		refused := make(chan error, maxQueued)
		for range maxQueued {
			go func() {
				err := q.take(t.Context(), flood, time.Second)
				if err == nil {
					q.release()
				}
				refused <- err
			}()
		}
		synctest.Wait()
		got := make(chan error, 1)
		go func() { got <- q.take(t.Context(), other, time.Second); q.release() }()
		synctest.Wait()
		if len(refused) != 1 || <-refused == nil {
			t.Fatalf("%d of the flood lost their places, want 1", len(refused))
		}
		q.release()
		synctest.Wait()
		if len(refused) != maxQueued-1 || len(got) != 1 || <-got != nil {
			t.Errorf("%d of the flood and %d others had their turn", len(refused), len(got))
		}
		if q.free != 1 || q.queued != 0 || len(q.lines) != 0 || len(q.turns) != 0 {
			t.Errorf("the queue is not empty: %d free, %d queued, %d lines, %d turns", q.free, q.queued, len(q.lines), len(q.turns))
		}
	})
}

// TestR08OnlyTheKnownClusterReviewsTokens: a cluster that does not prove to be the known one is not asked, whether that
// shows at the review or was seen before. Then nobody waits.
func TestR08OnlyTheKnownClusterReviewsTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := floodedFixture(t)
		ends := time.Now().Add(time.Hour)
		w.now, s.good = time.Now(), claimed("good", ends)
		show := func() error { clear(w.tokens.known); return w.identifyFrom(t, "10.0.0.1", "c1", s.good) }
		probed := func() { <-time.NewTimer(6 * time.Second).C } // another round of the probe has ended
		for _, step := range []struct {
			become func() (string, error) // nil: it is the known one
			want   string                 // of the error; empty: the token is accepted
		}{
			{nil, ""},
			{func() (string, error) { return "u2", nil }, "another cluster answers"},
			{nil, ""},
			{func() (string, error) { return "", errors.New("no route to 192.0.2.1") }, "does not show the UID of namespace kube-system"},
			{nil, ""},
			{func() (string, error) { return "", nil }, "does not accept the hub's credentials"},
		} {
			s.mu.Lock()
			s.become = step.become
			s.mu.Unlock()
			if step.become == nil {
				probed()
			}
			for _, when := range []string{"at the review", "later"} {
				asked, began := s.asked, time.Now()
				err := show()
				switch {
				case step.want == "" && err != nil:
					t.Fatalf("the known cluster, %s: %v", when, err)
				case step.want == "":
				case status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), step.want) || strings.Contains(err.Error(), "192.0.2.1"):
					t.Errorf("%s: %v, want %q", when, err, step.want)
				case s.asked != asked || !time.Now().Equal(began):
					t.Errorf("%s: %d tokens were shown to it, for %s", when, s.asked-asked, time.Since(began))
				}
				probed()
			}
		}
	})
}
