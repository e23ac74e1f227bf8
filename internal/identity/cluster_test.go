package identity

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/internal/kube/clients"
	"isthmus.dev/isthmus/internal/kube/listwatch"
	"isthmus.dev/isthmus/internal/kube/listwatch/listwatchtest"
)

func kubeSecret(name string, typ corev1.SecretType, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "edge"}, Type: typ, Data: data}
}

// following starts Run until the test ends.
func (d *drawer) run() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = d.secrets.Run(ctx) }()
	d.t.Cleanup(func() { cancel(); <-ended })
}

func (d *drawer) await(what string, ok func() bool) {
	d.t.Helper()
	testbed.WaitFor(d.t, 5*time.Minute, what, func() error {
		if !ok() {
			return context.DeadlineExceeded
		}
		return nil
	})
}

// proving is the cluster at the client, which proves itself until the test ends.
func (d *drawer) proving(client clients.Interface) *listwatch.Cluster {
	return listwatchtest.Probed(d.t, client, listwatch.ClusterOptions{Probe: time.Second})
}

// serving is a cluster with these Secrets.
func serving(secrets ...*corev1.Secret) *listwatchtest.Server {
	server := listwatchtest.New("u1")
	for _, s := range secrets {
		server.Put(s)
	}
	return server
}

// TestG17FilesAreNotGranted: what is granted is the Secret of the cluster, also where a file
// has its name.
func TestG17FilesAreNotGranted(t *testing.T) {
	d := newDrawer(t)
	d.pair("web", testbed.Subject{Name: "file"})
	d.open()
	ref := Ref{Cluster: "c1", Namespace: "edge", Name: "web", Granted: true}
	d.await("the file", func() bool { return d.secret("web", false) != "" })
	d.run()
	defer d.secrets.Follow(ref)()
	if _, ok := d.secrets.Secret(ref); ok {
		t.Error("the file is granted")
	}
	cert, key := d.ca.Issue(testbed.Subject{Name: "web"})
	server := serving(kubeSecret("web", corev1.SecretTypeTLS, map[string][]byte{"tls.crt": cert, "tls.key": key}))
	defer d.secrets.Attach("c1", d.proving(server.Client(t)))()
	d.await("the Secret", func() bool {
		found, ok := d.secrets.Secret(ref)
		return ok && string(found.Material.Chain) == string(cert)
	})
}

// TestG83ASecretIsMissingOnceItWasLookedFor: what is being read is not missing, and is where nobody reads it.
func TestG83ASecretIsMissingOnceItWasLookedFor(t *testing.T) {
	d := newDrawer(t)
	server := serving()
	missing := func(name string) bool { return strings.Contains(d.problems(), ProblemMissing+" secret c1/edge/"+name) }
	detach := d.secrets.Attach("c1", d.proving(server.Client(t)))
	defer d.secrets.Follow(Ref{Cluster: "c1", Namespace: "edge", Name: "web"})()
	defer d.secrets.Follow(Ref{Cluster: "c1", Namespace: "edge", Name: "clients", Authorities: true})()
	if missing("web") || missing("clients-cacert") {
		t.Errorf("before the Secrets were read: %q", d.problems())
	}
	detach()
	if !missing("web") || !missing("clients-cacert") {
		t.Errorf("without a cluster: %q", d.problems())
	}
	defer d.secrets.Attach("c1", d.proving(server.Client(t)))()
	d.run()
	defer d.secrets.Follow(Ref{Cluster: "c1", Namespace: "edge", Name: "other"})()
	d.await("the Secrets to be missing", func() bool { return missing("web") && missing("clients-cacert") && missing("other") })
}

func TestX23SecretsOfAClusterAreFollowedByName(t *testing.T) {
	d := newDrawer(t)
	long := testbed.Subject{Name: "web", NotAfter: d.now.Add(30 * 24 * time.Hour)}
	cert, key := d.ca.Issue(long)
	server := serving(
		kubeSecret("web", corev1.SecretTypeTLS, map[string][]byte{"tls.crt": cert, "tls.key": key}),
		kubeSecret("web-cacert", corev1.SecretTypeOpaque, map[string][]byte{"cacert": d.ca.PEM}),
		kubeSecret("other", corev1.SecretTypeTLS, map[string][]byte{"tls.crt": cert, "tls.key": key}),
		kubeSecret("token", corev1.SecretTypeServiceAccountToken, map[string][]byte{"tls.crt": cert, "tls.key": key}),
	)
	d.run()
	web, authorities := Ref{Cluster: "c1", Namespace: "edge", Name: "web"},
		Ref{Cluster: "c1", Namespace: "edge", Name: "web", Authorities: true}
	done := []func(){
		d.secrets.Follow(web), d.secrets.Follow(authorities),
		d.secrets.Follow(Ref{Cluster: "c1", Namespace: "edge", Name: "token"}),
	}
	if !strings.Contains(d.problems(), ProblemMissing+" secret c1/edge/web") {
		t.Errorf("before a cluster is attached: %q", d.problems())
	}
	detach := d.secrets.Attach("c1", d.proving(server.Client(t)))
	d.await("the secret", func() bool { return d.secret("web", false) == string(cert)+string(key) })
	d.await("the authorities", func() bool { return d.secret("web", true) == string(d.ca.PEM) })
	if d.secret("other", false) != "" || d.secret("token", false) != "" {
		t.Error("what nobody refers to, or a token, was read")
	}
	if _, ok := d.secrets.Secret(Ref{Cluster: "c1", Namespace: "shop", Name: "web"}); ok {
		t.Error("it is there for another namespace")
	}
	newCert, newKey := d.ca.Issue(long)
	put := func(data map[string][]byte) { server.Put(kubeSecret("web", corev1.SecretTypeTLS, data)) }
	put(map[string][]byte{"tls.crt": newCert, "tls.key": newKey})
	d.await("the rotation", func() bool { return d.secret("web", false) == string(newCert)+string(newKey) })
	put(map[string][]byte{"tls.crt": newCert, "tls.key": key})
	d.await("the problem", func() bool { return strings.Contains(d.problems(), ProblemUnusable+" secret c1/edge/web") })
	if d.secret("web", false) != string(newCert)+string(newKey) {
		t.Error("a broken secret took the place of the last")
	}
	detach()
	if d.secret("web", false) == "" {
		t.Error("the secret went with the cluster's client")
	}
	for _, f := range done {
		f()
	}
	d.await("it to be forgotten", func() bool { return d.secret("web", false) == "" && d.problems() == "" })
}

func TestFilesComeBeforeClusters(t *testing.T) {
	d := newDrawer(t)
	cert, key := d.pair("web", testbed.Subject{Name: "web", NotAfter: d.now.Add(30 * 24 * time.Hour)})
	d.open()
	other, otherKey := d.ca.Issue(testbed.Subject{Name: "other"})
	d.run()
	defer d.secrets.Follow(Ref{Cluster: "c1", Namespace: "edge", Name: "web"})()
	changed := d.secrets.Changed()
	server := serving(kubeSecret("web", corev1.SecretTypeTLS, map[string][]byte{"tls.crt": other, "tls.key": otherKey}))
	defer d.secrets.Attach("c1", d.proving(server.Client(t)))()
	await(t, changed)
	if d.secret("web", false) != string(cert)+string(key) {
		t.Error("the cluster's came first")
	}
}
