package listwatch_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/kube/listwatch"
	"isthmus.dev/isthmus/internal/kube/listwatch/listwatchtest"
)

// value is what the tests keep of a Secret.
type value struct{ name, content string }

// fixture is a cluster that is followed, and what was told of it.
type fixture struct {
	*listwatchtest.Server
	cluster *listwatch.Cluster
	before  int // requests before the fault

	mu      sync.Mutex
	now     string // "a=1 b=2"
	trouble error  // why nothing is followed
}

// Now is part of listwatch.Keeper.
func (w *fixture) Now(all map[listwatch.Key]value) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var now []string
	for _, v := range all {
		now = append(now, v.name+"="+v.content)
	}
	slices.Sort(now)
	w.now = strings.Join(now, " ")
}

// Following is part of listwatch.Keeper.
func (w *fixture) Following(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !errors.Is(err, listwatch.ErrRelist) {
		w.trouble = err
	}
}

func (w *fixture) view() (now string, trouble error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now, w.trouble
}

// asked are the requests since the fault.
func (w *fixture) asked() string { return strings.Join(w.Requests()[w.before:], ", ") }

// tries are the lists and watches that began since the fault.
func (w *fixture) tries() (n int) {
	for _, asked := range w.Requests()[w.before:] {
		if asked == "list" || strings.HasPrefix(asked, "watch ") {
			n++
		}
	}
	return n
}

func secret(name, content string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "edge", Name: name}, Data: map[string][]byte{"content": []byte(content)}}
}

// start follows a cluster with the Secrets a and b until the test ends.
func start(t *testing.T, change func(*listwatch.Resource[value])) *fixture {
	t.Helper()
	w := &fixture{Server: listwatchtest.New("u1")}
	w.Put(secret("a", "1"))
	w.Put(secret("b", "2"))
	w.cluster = listwatch.NewCluster(w.Client(t), listwatch.ClusterOptions{Logger: slog.New(slog.DiscardHandler)})
	r := listwatch.Of("secrets", w.cluster.Client().CoreV1().Secrets("edge"),
		func(in *corev1.Secret) value { return value{in.Name, string(in.Data["content"])} },
		func(v value) int64 { return int64(len(v.content)) })
	r.PageSize = 1
	if change != nil {
		change(&r)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { w.cluster.Run(ctx, func(string, error) {}) })
	running.Go(func() {
		listwatch.Keep(ctx, w.cluster, r, func(v value) listwatch.Key { return listwatch.Key{Namespace: "edge", Name: v.name} },
			federation.Limits{Objects: 20, Pages: 30, Bytes: 1000}, w)
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	elapse(time.Second)
	return w
}

// elapse lets time pass in a bubble.
func elapse(d time.Duration) { <-time.NewTimer(d).C; synctest.Wait() }

// TestFaultsOfServers: what was read stays or becomes what the proven cluster has, the
// trouble is reported, and ends when the server recovers.
func TestFaultsOfServers(t *testing.T) {
	for name, test := range faults {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := start(t, test.resource)
				if now, trouble := w.view(); now != "a=1 b=2" || trouble != nil {
					t.Fatalf("at the start %q is known, and the trouble is %v", now, trouble)
				}
				w.before = len(w.Requests())
				test.fault(w)
				elapse(20 * time.Second)
				during := cmp.Or(test.during, "a=1 b=2")
				now, trouble := w.view()
				if cmp.Or(now, "nothing") != during {
					t.Errorf("%q is known, want %q", now, during)
				}
				if test.says == "" && trouble != nil || test.says != "" && (trouble == nil || !strings.Contains(trouble.Error(), test.says)) {
					t.Errorf("the trouble is %v, want %q", trouble, test.says)
				}
				if got := w.asked(); test.asked != "" && got != test.asked {
					t.Errorf("asked for %s, want %s", got, test.asked)
				}
				if n := w.tries(); n > 20 {
					t.Errorf("%d tries in 20 s", n)
				}
				w.heal()
				elapse(2 * time.Minute)
				if now, trouble := w.view(); now != cmp.Or(test.after, during) || trouble != nil {
					t.Errorf("once the server is right %q is known, want %q, and the trouble is %v", now, cmp.Or(test.after, during), trouble)
				}
			})
		})
	}
}

// heal makes the server right again.
func (w *fixture) heal() {
	w.Wrong(nil)
	w.Become("u1")
	w.Delete("edge", "poison")
	for i := 18; i < 30; i++ {
		w.Delete("edge", fmt.Sprint("n", i))
	}
}
