package apply_test

import (
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/apply"
)

var c1 = federation.ObjectKey{Group: federation.MeshGroup, Kind: "Cluster", Name: "c1"}

// cluster is a Cluster that names the version of its credentials; "" none.
func cluster(network, version string) string {
	annotations := ""
	if version != "" {
		annotations = ", annotations: {isthmus.dev/credentials: " + version + "}"
	}
	return `
apiVersion: isthmus.dev/v1
kind: Cluster
metadata: {name: c1` + annotations + `}
spec: {provider: Kubernetes, network: ` + network + `}
`
}

// sealed gives the request credentials.
func sealed(version, secret string) func(*apply.Request) {
	return func(r *apply.Request) {
		r.Credentials = []apply.Credentials{{Of: c1, Version: version, Sealed: []byte(secret)}}
	}
}

func (w *fixture) secret() string {
	w.t.Helper()
	got, err := w.store.Secret(w.t.Context(), c1)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(got)
}

// credentials are those of which the stored Cluster speaks.
func (w *fixture) credentials() string {
	w.t.Helper()
	o, found := w.views.Latest().State.Object(c1)
	if !found {
		return "no cluster"
	}
	_, rest, _ := strings.Cut(string(o.Manifest), `"annotations":{"isthmus.dev/credentials":"`)
	name, _, _ := strings.Cut(rest, `"`)
	return name
}

func TestCredentialsComeAndGoWithTheirCluster(t *testing.T) {
	w := newFixture(t)
	w.apply(cluster("n1", ""), sealed("v1", "S1"), dryRun)
	if got := w.secret(); got != "" {
		t.Errorf("a dry run kept the secret %q", got)
	}
	first := w.must(cluster("n1", ""), sealed("v1", "S1"))
	if w.secret() != "S1" || w.credentials() != "v1" {
		t.Errorf("attached: secret %q of version %q", w.secret(), w.credentials())
	}
	w.must(cluster("n2", ""))
	if w.secret() != "S1" || w.credentials() != "v1" {
		t.Errorf("after an apply without credentials: secret %q of version %q", w.secret(), w.credentials())
	}
	w.must(cluster("n2", ""), sealed("v2", "S2"))
	if w.secret() != "S2" || w.credentials() != "v2" {
		t.Errorf("rotated: secret %q of version %q", w.secret(), w.credentials())
	}
	back, err := w.engine.Rollback(t.Context(), apply.Rollback{To: first.Revision})
	if err != nil || len(back.Errors) > 0 {
		t.Fatal(back.Errors, err)
	}
	if w.secret() != "S2" || w.credentials() != "v2" {
		t.Errorf("rolled back: secret %q of version %q; want those that are there", w.secret(), w.credentials())
	}
	deleted, err := w.engine.Delete(t.Context(), apply.Deletion{Objects: []federation.ObjectKey{c1}})
	if err != nil || len(deleted.Errors) > 0 {
		t.Fatal(deleted.Errors, err)
	}
	if got := w.secret(); got != "" {
		t.Errorf("the cluster is deleted, and its secret %q is there", got)
	}
	back, err = w.engine.Rollback(t.Context(), apply.Rollback{To: first.Revision})
	if err != nil || len(back.Errors) > 0 {
		t.Fatal(back.Errors, err)
	}
	if w.secret() != "" || w.credentials() != "" {
		t.Errorf("restored after its end: secret %q of version %q; want none", w.secret(), w.credentials())
	}
}

func TestAManifestCannotSayWhichCredentialsAreInUse(t *testing.T) {
	w := newFixture(t)
	w.must(cluster("n1", ""), sealed("v1", "S1"))
	const want = "INVALID metadata.annotations[isthmus.dev/credentials]"
	if r := w.apply(cluster("n1", "v7"), force); codes(r) != want {
		t.Errorf("another version: %q, want %q", codes(r), want)
	}
	w.must(cluster("n1", "v1")) // as an export of it has it
}

func TestPrunedClustersTakeTheirCredentialsAlong(t *testing.T) {
	w := newFixture(t)
	w.must(cluster("n1", ""), sealed("v1", "S1"), func(r *apply.Request) { r.Set = "fleet" })
	w.must(route("reviews", "v1"), prune("fleet"))
	if got := w.secret(); got != "" || w.credentials() != "no cluster" {
		t.Errorf("pruned: secret %q, version %q", got, w.credentials())
	}
}
