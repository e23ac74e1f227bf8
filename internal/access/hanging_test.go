package access

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"k8s.io/client-go/rest"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/kube/clients"
)

// claimed is a token that claims to be of a pod.
func claimed(pod string, ends time.Time) Token {
	payload, _ := json.Marshal(map[string]any{
		"aud": "isthmus", "exp": ends.Unix(), "sub": "system:serviceaccount:shop:web",
		"kubernetes.io": map[string]any{"pod": map[string]string{"uid": pod}},
	})
	return Token(fmt.Sprintf("e30.%s.c2lnbmF0dXJl", base64.RawURLEncoding.EncodeToString(payload)))
}

// identifyFrom shows the token from an address.
func (w *fixture) identifyFrom(t *testing.T, from string, cluster string, token Token) error {
	c := call{token: token, cluster: cluster}.context(t)
	p, _ := peer.FromContext(c)
	p.Addr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(from), 4711))
	_, err := w.Identify(peer.NewContext(c, p))
	return err
}

// TestR09HangingCluster: the API server of c1 proves itself and never answers a review, and a hundred of its pods show
// tokens. Pods of c2 are proven meanwhile, and soon nobody waits for c1 any more.
func TestR09HangingCluster(t *testing.T) {
	t.Parallel()
	end := make(chan struct{})
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(kubeSystem("u1"))
			return
		}
		asked.Add(1)
		select {
		case <-end:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	defer close(end)
	hanging, err := clients.New(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	w := newFixture(map[federation.ClusterID]AttachState{"c1": {Attached: true, UID: "u1"}, "c2": {Attached: true, UID: "u1"}})
	w.attach(t, "c1", hanging)
	w.attach(t, "c2", newReviewer(t, true))
	ends := w.now.Add(time.Hour)
	var pods sync.WaitGroup
	for i := range 100 {
		pods.Go(func() {
			if err := w.identifyFrom(t, "10.0.0.1", "c1", claimed(fmt.Sprint("c1-", i), ends)); status.Code(err) != codes.Unavailable {
				t.Errorf("a pod of c1: %v", err)
			}
		})
	}
	await(t, "c1 to be asked", func() bool { return asked.Load() >= maxReviews })
	if err := w.identifyFrom(t, "10.0.0.2", "c2", claimed("c2-1", ends)); err != nil {
		t.Errorf("a pod of c2: %v", err)
	}
	pods.Wait()
	before := asked.Load()
	for range 20 {
		err := w.identifyFrom(t, "10.0.0.1", "c1", claimed("c1-later", ends))
		if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "asks again in") {
			t.Errorf("a pod of c1 that comes later: %v", err)
		}
	}
	if n := asked.Load(); n != before {
		t.Errorf("an API server that does not answer was asked %d times more", n-before)
	}
}

// TestR09AnsweringClusterIsAskedAgain: the breaker lets one through when its time is over, and closes when that one is
// answered.
func TestR09AnsweringClusterIsAskedAgain(t *testing.T) {
	a, now := newAttached(nil), time.Now()
	for range breakAfter {
		if err := a.mayAsk(now); err != nil {
			t.Fatal(err)
		}
		a.answered(false, now)
	}
	if err := a.mayAsk(now.Add(breakFor - time.Second)); err == nil {
		t.Error("it is asked too early")
	}
	now = now.Add(breakFor)
	if first, second := a.mayAsk(now), a.mayAsk(now); first != nil || second == nil {
		t.Errorf("when it is time: %v, and a second one: %v", first, second)
	}
	a.answered(true, now)
	if err := a.mayAsk(now); err != nil {
		t.Errorf("after an answer: %v", err)
	}
}

// TestR09OneBadPodBehindNAT: a pod whose tokens are refused has to wait, its neighbours behind the same address do not. An
// IPv6 /64 is one source, and a source that claims to be many pods has to wait in the end.
func TestR09OneBadPodBehindNAT(t *testing.T) {
	w, r := reviewed(t, false)
	ends := w.now.Add(time.Hour)
	try := func(from, pod string, i int) codes.Code {
		return status.Code(w.identifyFrom(t, from, "c1", claimed(pod, ends.Add(time.Duration(i)*time.Second))))
	}
	for i := range failures + 1 {
		if code, want := try("10.0.0.1", "bad", i), map[bool]codes.Code{
			true:  codes.Unauthenticated,
			false: codes.ResourceExhausted,
		}[i < failures]; code != want {
			t.Errorf("attempt %d of the bad pod: %s", i, code)
		}
	}
	r.mu.Lock()
	r.accept = true
	r.mu.Unlock()
	if code := try("10.0.0.1", "good", 0); code != codes.OK {
		t.Errorf("its neighbour: %s", code)
	}
	r.mu.Lock()
	r.accept = false
	r.mu.Unlock()
	for i := range failuresSource {
		from := netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 15: byte(i)}).String()
		if code := try(from, fmt.Sprint("pod-", i), 0); code != codes.Unauthenticated {
			t.Fatalf("attempt %d from %s: %s", i, from, code)
		}
	}
	if code := try("2001:db8::ffff", "one-more", 0); code != codes.ResourceExhausted {
		t.Errorf("one more of the same /64: %s", code)
	}
	if code := try("2001:db8:0:1::1", "elsewhere", 0); code != codes.Unauthenticated {
		t.Errorf("one of another /64: %s", code)
	}
}
