package identity

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

// gate is what a registry knows of its cluster.
type gate struct {
	mu      sync.Mutex
	open    bool
	lying   bool // what is read then was read from another cluster
	lost    chan struct{}
	changed chan struct{}
}

func newGate(open bool) *gate {
	return &gate{open: open, lost: make(chan struct{}), changed: make(chan struct{})}
}

// newProven is the gate of a cluster that is the known one.
func newProven() *gate { return newGate(true) }

func (g *gate) set(open, lying bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open && !open {
		close(g.lost)
		g.lost = make(chan struct{})
	}
	g.open, g.lying = open, lying
	close(g.changed)
	g.changed = make(chan struct{})
}

func (g *gate) Enter(ctx context.Context) (<-chan struct{}, func(context.Context) error, error) {
	for {
		g.mu.Lock()
		open, lost, changed := g.open, g.lost, g.changed
		g.mu.Unlock()
		if open {
			return lost, g.prove, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

func (g *gate) prove(context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lying || !g.open {
		return errors.New("another cluster answers")
	}
	return nil
}

// TestR08SecretsOfAnotherClusterAreNotUsed: what answers at a cluster's address and
// does not prove to be it neither gives nor takes away a key.
func TestR08SecretsOfAnotherClusterAreNotUsed(t *testing.T) {
	t.Parallel()
	d := newDrawer(t)
	long := testbed.Subject{Name: "web", NotAfter: d.now.Add(30 * 24 * time.Hour)}
	tls := func() (*corev1.Secret, string) {
		cert, key := d.ca.Issue(long)
		return kubeSecret("web", corev1.SecretTypeTLS, map[string][]byte{"tls.crt": cert, "tls.key": key}), string(cert) + string(key)
	}
	known, keys := tls()
	foreign, foreignKeys := tls()
	client, by := fake.NewClientset(foreign), newGate(false)
	listed := make(chan struct{}, 100)
	client.PrependReactor("list", "secrets", func(kubetesting.Action) (bool, runtime.Object, error) {
		listed <- struct{}{}
		return false, nil, nil
	})
	d.run()
	defer d.secrets.Follow(Ref{Cluster: "c1", Namespace: "edge", Name: "web"})()
	defer d.secrets.Attach("c1", client, by)()

	by.set(true, true) // another cluster begins to answer before the next proof
	<-listed
	<-listed // the first list was read, and not used
	if d.secret("web", false) != "" {
		t.Error("the key of another cluster is used")
	}
	by.set(false, false)
	d.update(client, known)
	by.set(true, false)
	d.await("the key of the known cluster", func() bool { return d.secret("web", false) == keys })

	by.set(false, false)
	d.update(client, foreign)
	if err := client.CoreV1().Secrets("edge").Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	by.set(true, true)
	for len(listed) > 0 {
		<-listed
	}
	<-listed
	<-listed
	if got := d.secret("web", false); got != keys {
		t.Errorf("another cluster took the key away, or replaced it: %t", got == foreignKeys)
	}
	by.set(true, false)
	d.await("the known cluster to take its key away", func() bool { return d.secret("web", false) == "" })
}

func (d *drawer) update(client *fake.Clientset, secret *corev1.Secret) {
	d.t.Helper()
	if _, err := client.CoreV1().Secrets("edge").Update(d.t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		d.t.Fatal(err)
	}
}
