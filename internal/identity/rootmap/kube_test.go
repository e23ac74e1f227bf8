package rootmap

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/internal/kube/listwatch"
	"isthmus.dev/isthmus/internal/kube/listwatch/listwatchtest"
)

// trust is the roots of a test.
type trust struct {
	mu      sync.Mutex
	roots   string
	changed chan struct{}
}

func (r *trust) Bundles() map[string][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return map[string][]byte{"cluster.local": []byte(r.roots), "other.example": []byte("never written")}
}

func (r *trust) Changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

func (r *trust) rotate(roots string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.roots = roots
	close(r.changed)
	r.changed = make(chan struct{})
}

// rig is an API server, and the hub's account there with the rights of the shipped manifests,
// unless the test says another one.
type rig struct {
	t       *testing.T
	kube    *testbed.Kube
	cluster *listwatch.Cluster
	trust   *trust
}

func newRig(t *testing.T, as func(*rest.Config, *testbed.Kube)) *rig {
	r := &rig{t: t, kube: testbed.StartKube(t, testbed.KubeOptions{}), trust: &trust{roots: "one", changed: make(chan struct{})}}
	for _, file := range []string{"reader.yaml", "root-configmaps.yaml"} {
		text, err := os.ReadFile("../../../deploy/kubernetes/" + file)
		if err != nil {
			t.Fatal(err)
		}
		r.kube.Apply(string(text))
	}
	token := r.kube.ServiceAccountToken(testbed.TokenOptions{Namespace: "isthmus", Account: "isthmus-reader"})
	config := &rest.Config{Host: r.kube.URL, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: r.kube.Admin.CA}, QPS: -1}
	if as != nil {
		as(config, r.kube)
	}
	r.cluster = listwatchtest.Connected(t, config)
	return r
}

// follow runs a writer until the test, or stop, ends it.
func (r *rig) follow(overwrite bool) (stop func()) {
	w := New(Options{Roots: r.trust, TrustDomain: "cluster.local", Logger: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); w.Follow(ctx, "c1", r.cluster, overwrite) }()
	stop = func() { cancel(); <-ended }
	r.t.Cleanup(stop)
	return stop
}

func (r *rig) namespace(name string) {
	r.kube.Apply("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: " + name + "\n")
}

// content is that of the namespace's ConfigMap; empty: there is none.
func (r *rig) content(namespace string) string {
	r.t.Helper()
	answer := r.kube.Do(http.MethodGet, "/api/v1/namespaces/"+namespace+"/configmaps/"+Name, nil)
	if answer.Status == http.StatusNotFound {
		return ""
	}
	var found struct{ Data map[string]string }
	answer.Decode(r.t, &found)
	return found.Data["root-cert.pem"]
}

func (r *rig) await(namespace, want string) {
	r.t.Helper()
	testbed.WaitFor(r.t, 5*time.Minute, "the roots of "+namespace, func() error {
		if got := r.content(namespace); got != want {
			return fmt.Errorf("it has %q, want %q", got, want)
		}
		return nil
	})
}

// istiod writes the ConfigMap as istiod does.
func (r *rig) istiod(namespace, roots string) {
	r.kube.Apply(fmt.Sprintf(`apiVersion: v1
kind: ConfigMap
metadata: {name: %s, namespace: %s, labels: {istio.io/config: "true"}}
data: {root-cert.pem: %q}
`, Name, namespace, roots))
}

// TestU08RootsAreWritten to the namespaces that there are and that come, again when they
// change, with the rights of the shipped manifests; what istiod wrote stays.
func TestU08RootsAreWritten(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.namespace("shop")
	r.namespace("istiods")
	r.istiod("istiods", "of istiod")
	stop := r.follow(false)
	r.await("shop", "one")
	r.namespace("later")
	r.await("later", "one")
	r.trust.rotate("two")
	r.await("shop", "two")
	r.await("later", "two")
	r.istiod("later", "of istiod") // it takes the ConfigMap over
	r.trust.rotate("three")
	r.await("shop", "three")
	for namespace, want := range map[string]string{"istiods": "of istiod", "later": "of istiod", "kube-system": ""} {
		if got := r.content(namespace); got != want {
			t.Errorf("%s has %q, want %q", namespace, got, want)
		}
	}
	stop()
	r.follow(true)
	r.await("istiods", "three")
	r.await("later", "three")
}

// TestU08AnotherClusterGetsNothing: a server that answers for another cluster is written
// nothing.
func TestU08AnotherClusterGetsNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *rest.Config, k *testbed.Kube) { // whose account exists in both
		c.BearerToken, c.CertData, c.KeyData = "", k.Admin.Cert, k.Admin.Key
	})
	r.namespace("shop")
	r.follow(true)
	r.await("shop", "one")
	r.kube.Replace()
	r.namespace("shop")
	r.trust.rotate("two")
	testbed.WaitFor(t, 5*time.Minute, "the gate to close", func() error {
		if err := r.cluster.Verify(t.Context(), r.cluster.Client(), r.cluster.UID()); err == nil ||
			!strings.Contains(err.Error(), "another cluster") {
			return fmt.Errorf("the cluster says %w", err)
		}
		return nil
	})
	if got := r.content("shop"); got != "" {
		t.Errorf("another cluster has %q", got)
	}
}

// TestU08NothingIsWrittenThroughAnOpenGate for a server that is of another cluster since it was
// probed last.
func TestU08NothingIsWrittenThroughAnOpenGate(t *testing.T) {
	server := listwatchtest.New("u1")
	cluster := listwatchtest.Probed(t, server.Client(t), listwatch.ClusterOptions{Probe: time.Hour, Logger: slog.New(slog.DiscardHandler)})
	wrote := make(chan string, 1)
	server.Wrong(func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodGet {
			wrote <- r.Method + " " + r.URL.Path
		}
		return nil, nil //nolint:nilnil // the server answers
	})
	server.Become("u2")
	f := &rootWriter{cluster: cluster}
	if err := f.write(t.Context(), "shop", found{}, create, "roots"); err == nil || !strings.Contains(err.Error(), "another cluster") {
		t.Errorf("it is written: %v", err)
	}
	if len(wrote) > 0 {
		t.Errorf("the other cluster gets %s", <-wrote)
	}
}
