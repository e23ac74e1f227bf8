package identity

import (
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"isthmus.dev/isthmus/deploy/testbed"
)

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
	server := serving(foreign)
	cluster := d.proving(server.Client(t))
	d.await("the cluster to be known", func() bool { return cluster.UID() == "u1" })
	d.run()
	defer d.secrets.Follow(Ref{Cluster: "c1", Namespace: "edge", Name: "web"})()
	// Another cluster begins to answer between the last proof and the list.
	server.Wrong(func(request *http.Request) (*http.Response, error) {
		if strings.HasSuffix(request.URL.Path, "/secrets") && len(server.Requests()) == 1 {
			server.Become("u2")
		}
		return nil, nil
	})
	defer d.secrets.Attach("c1", cluster)()
	d.await("the list, and that it is of another cluster", func() bool { return len(server.Requests()) > 0 && server.Proofs() > 1 })
	if d.secret("web", false) != "" {
		t.Error("the key of another cluster is used")
	}
	server.Wrong(nil)
	server.Put(known)
	server.Become("u1")
	d.await("the key of the known cluster", func() bool { return d.secret("web", false) == keys })

	server.Become("u2")
	server.Put(foreign)
	server.Delete("edge", "web")
	d.await("the other cluster to be noticed", func() bool { return server.Proofs() > 1 })
	if got := d.secret("web", false); got != keys {
		t.Errorf("another cluster took the key away, or replaced it: %t", got == foreignKeys)
	}
	server.Become("u1")
	d.await("the known cluster to take its key away", func() bool { return d.secret("web", false) == "" })
}
