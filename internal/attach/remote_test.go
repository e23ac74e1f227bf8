package attach_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/attach"
	"isthmus.dev/isthmus/internal/kube/listwatch"
	"isthmus.dev/isthmus/internal/kube/listwatch/listwatchtest"
)

// taker keeps what the Secrets of a cluster name.
type taker struct {
	mu    sync.Mutex
	named []string
	why   string
}

func (t *taker) Named(_ federation.ClusterID, _ attach.RemoteKind, all []attach.Remote) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.named, t.why = nil, ""
	for _, r := range all {
		t.named = append(t.named, r.Key)
	}
}

func (t *taker) Unreadable(_ federation.ClusterID, _ attach.RemoteKind, why string, _ bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.why = why
}

func (t *taker) view() (named, why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.named, " "), t.why
}

func naming(name string, ids ...string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: "istio-system", Name: name,
		Labels: map[string]string{"istio/multiCluster": "true"},
	}, Data: map[string][]byte{}}
	for _, id := range ids {
		s.Data[id] = []byte("kubeconfig")
	}
	return s
}

// TestF47SecretsOfAnotherClusterNameNothing: another cluster behind the URL neither adds
// nor removes clusters that the Secrets of the known one name, and the reason is reported.
func TestF47SecretsOfAnotherClusterNameNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := listwatchtest.New("u1")
		server.Put(naming("one", "east", "west"))
		cluster := listwatch.NewCluster(server.Client(t), listwatch.ClusterOptions{})
		snapshots, heard := federation.NewAggregate(nil), &taker{}
		holder := federation.ShardKey{Cluster: "home", Provider: federation.Kubernetes}
		snapshots.Open(federation.ShardKey{Cluster: "home", Provider: federation.Operator}).Update(federation.Edit{
			Clusters: federation.Delta[federation.ClusterID,
				federation.ClusterSpec]{Set: map[federation.ClusterID]federation.ClusterSpec{"home": {Provider: federation.Kubernetes}}},
		})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { cluster.Run(ctx, func(string, error) {}) })
		running.Go(func() {
			attach.NewRemotes(attach.RemoteOptions{Namespace: "istio-system", Snapshots: snapshots, To: heard}).Follow(ctx, "home", cluster)
		})
		defer running.Wait()
		defer cancel()
		expect := func(when, named, why string) {
			t.Helper()
			<-time.NewTimer(time.Minute).C
			synctest.Wait()
			if gotNamed, gotWhy := heard.view(); gotNamed != named || !strings.Contains(gotWhy, why) || why == "" && gotWhy != "" {
				t.Errorf("%s: %q is named, want %q, and the trouble is %q", when, gotNamed, named, gotWhy)
			}
		}
		expect("before it is known who the cluster is", "", "")
		snapshots.Open(holder).Update(federation.Edit{
			Services: federation.Delta[federation.ServiceKey, *federation.Shard]{Full: true},
			Identity: &federation.ClusterIdentity{UID: "u1"},
		})
		expect("once it is known", "east west", "")
		server.Become("u2")
		expect("another cluster", "east west", "another cluster answers")
		server.Become("u1")
		expect("the known one, unchanged", "east west", "")
		server.Become("u2")
		server.Put(naming("one", "foreign"))
		expect("another cluster again", "east west", "another cluster answers")
		server.Put(naming("one", "east"))
		server.Put(naming("two", "north"))
		server.Become("u1")
		expect("the known one again", "east north", "")
		cluster.Relist()
		server.Delete("istio-system", "two")
		expect("after a list", "east", "")
	})
}
