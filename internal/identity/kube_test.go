package identity

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/internal/kube/clients"
)

const edgeNamespaces = `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"%s"}}`

// secretsManifest is what an operator applies to let the hub read Secrets.
func secretsManifest(t *testing.T) string {
	t.Helper()
	return manifest(t, "secrets.yaml")
}

func manifest(t *testing.T, name string) string {
	t.Helper()
	manifest, err := os.ReadFile("../../deploy/kubernetes/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(manifest)
}

// gatewayCluster is a real API server with the account that secrets.yaml names,
// which has the rights that reader.yaml gives, and a client of it.
func gatewayCluster(t *testing.T) (*testbed.Kube, clients.Interface) {
	t.Helper()
	kube := testbed.StartKube(t, testbed.KubeOptions{})
	kube.Apply(manifest(t, "reader.yaml"))
	for _, name := range []string{"edge", "shop"} {
		kube.Apply(fmt.Sprintf(edgeNamespaces, name))
	}
	made := kube.Do(http.MethodPost, "/api/v1/namespaces/isthmus/serviceaccounts/isthmus-reader/token",
		[]byte(`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}`))
	var request struct{ Status struct{ Token string } }
	if err := json.Unmarshal(made.Body, &request); err != nil || request.Status.Token == "" {
		t.Fatalf("making a token: %v: %s", err, made.Body)
	}
	config := &rest.Config{Host: kube.URL, BearerToken: request.Status.Token, TLSClientConfig: rest.TLSClientConfig{CAData: kube.Admin.CA}}
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(transport.CloseIdleConnections)
	client, err := clients.With(config, transport)
	if err != nil {
		t.Fatal(err)
	}
	return kube, client
}

// secretOf is a Secret of the namespace edge.
func secretOf(name, typ string, data map[string][]byte) string {
	encoded := map[string]string{}
	for part, content := range data {
		encoded[part] = base64.StdEncoding.EncodeToString(content)
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": typ, "metadata": map[string]any{"name": name, "namespace": "edge"}, "data": encoded,
	})
	if err != nil {
		panic(err) // cannot be: these are texts
	}
	return string(text)
}

// says tells what the problem with that code says; "": there is none.
func (d *drawer) says(code string) string {
	all, _ := d.secrets.Problems()
	for _, p := range all {
		if p.Code == code {
			return p.Message
		}
	}
	return ""
}

// well reports whether nothing is wrong but that certificates end some day.
func (d *drawer) well() bool {
	return d.says(ProblemMissing)+d.says(ProblemSource)+d.says(ProblemUnusable) == ""
}

// TestX23SecretsOfARealCluster: the account of the hub has the rights that
// secrets.yaml gives, and no others; without them the problem says what to grant.
func TestX23SecretsOfARealCluster(t *testing.T) {
	t.Parallel()
	kube, client := gatewayCluster(t)
	d := newDrawer(t)
	long := testbed.Subject{Name: "web", NotAfter: d.now.Add(30 * 24 * time.Hour)}
	cert, key := d.ca.Issue(long)
	tls := func(cert, key []byte) string {
		return secretOf("web", "kubernetes.io/tls", map[string][]byte{"tls.crt": cert, "tls.key": key})
	}
	d.run()
	defer d.secrets.Follow(Ref{Cluster: "c1", Namespace: "edge", Name: "web"})()
	defer d.secrets.Follow(Ref{Cluster: "c1", Namespace: "edge", Name: "web", Authorities: true})()
	defer d.secrets.Attach("c1", d.proving(client))()

	kube.Apply(tls(cert, key))
	d.await("the missing right to be told", func() bool {
		return strings.Contains(d.says(ProblemSource), "grant it the verbs list and watch on secrets in the namespace edge")
	})
	if d.secret("web", false) != "" {
		t.Error("a secret was read without the right to")
	}
	kube.Apply(secretsManifest(t))
	d.await("the secret", func() bool { return d.secret("web", false) == string(cert)+string(key) && d.says(ProblemSource) == "" })
	if !strings.Contains(d.says(ProblemMissing), "no source has it") {
		t.Errorf("the authorities are nowhere, and problems are %q", d.problems())
	}
	kube.Apply(secretOf("web-cacert", "Opaque", map[string][]byte{"ca.crt": d.ca.PEM}))
	d.await("the authorities", func() bool { return d.secret("web", true) == string(d.ca.PEM) && d.well() })

	newCert, newKey := d.ca.Issue(long)
	kube.Apply(tls(newCert, newKey))
	d.await("the rotation", func() bool { return d.secret("web", false) == string(newCert)+string(newKey) })
	kube.Apply(tls(cert, newKey))
	d.await("the half rotation to be told", func() bool { return d.says(ProblemUnusable) != "" })
	if d.secret("web", false) != string(newCert)+string(newKey) {
		t.Error("half a rotation took the place of the last pair")
	}
	kube.Apply(tls(cert, key))
	d.await("the whole of it", func() bool { return d.secret("web", false) == string(cert)+string(key) && d.well() })

	kube.Delete(tls(cert, key))
	d.await("it to be gone", func() bool { return d.secret("web", false) == "" && d.says(ProblemMissing) != "" })
	if d.secret("web", true) != string(d.ca.PEM) {
		t.Error("the authorities went with the certificate")
	}
	kube.Apply(tls(newCert, newKey))
	d.await("it again", func() bool { return d.secret("web", false) == string(newCert)+string(newKey) && d.well() })
}

// TestS31LostRightsToSecretsTakeNothingAway: what was read stays in use, and what
// came meanwhile is read when the right is back. A watch outlives its right in an
// API server, but not that server.
func TestS31LostRightsToSecretsTakeNothingAway(t *testing.T) {
	t.Parallel()
	kube, client := gatewayCluster(t)
	d := newDrawer(t)
	long := testbed.Subject{Name: "web", NotAfter: d.now.Add(30 * 24 * time.Hour)}
	cert, key := d.ca.Issue(long)
	kube.Apply(secretsManifest(t), secretOf("web", "kubernetes.io/tls", map[string][]byte{"tls.crt": cert, "tls.key": key}))
	d.run()
	defer d.secrets.Follow(Ref{Cluster: "c1", Namespace: "edge", Name: "web"})()
	defer d.secrets.Attach("c1", d.proving(client))()
	d.await("the secret", func() bool { return d.secret("web", false) == string(cert)+string(key) })

	kube.Delete("apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: isthmus-gateway-secrets, namespace: edge}\n")
	kube.Restart()
	d.await("the lost right to be told", func() bool {
		return strings.Contains(d.says(ProblemSource), "grant it the verbs list and watch on secrets")
	})
	newCert, newKey := d.ca.Issue(long)
	kube.Apply(secretOf("web", "kubernetes.io/tls", map[string][]byte{"tls.crt": newCert, "tls.key": newKey}))
	if d.secret("web", false) != string(cert)+string(key) {
		t.Error("the secret went with the right to read it")
	}
	kube.Apply(secretsManifest(t))
	d.await("what came meanwhile", func() bool { return d.secret("web", false) == string(newCert)+string(newKey) && d.problems() == "" })
}

// TestSecretsManifestGrantsNoMore: list and watch of Secrets in its namespace, and
// with resourceNames only by those names.
func TestSecretsManifestGrantsNoMore(t *testing.T) {
	t.Parallel()
	kube, client := gatewayCluster(t)
	kube.Apply(secretsManifest(t))
	list := func(namespace, name string) error {
		_, err := client.CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		return err
	}
	testbed.WaitFor(t, 5*time.Minute, "the right", func() error { return list("edge", "web") })
	_, get := client.CoreV1().Secrets("edge").Get(t.Context(), "web", metav1.GetOptions{})
	_, maps := client.CoreV1().ConfigMaps("edge").List(t.Context(), metav1.ListOptions{})
	_, everywhere := client.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{})
	for what, err := range map[string]error{
		"getting a Secret": get, "listing ConfigMaps": maps, "listing the Secrets of all namespaces": everywhere,
		"listing those of another": list("shop", "web"),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s gives %v", what, err)
		}
	}
	kube.Apply(strings.Replace(secretsManifest(t), "resources: [secrets]", "resources: [secrets]\n  resourceNames: [web]", 1))
	testbed.WaitFor(t, 5*time.Minute, "the right to others to go", func() error {
		if err := list("edge", "other"); !apierrors.IsForbidden(err) {
			return fmt.Errorf("it gives %w", err)
		}
		return nil
	})
	if err := list("edge", "web"); err != nil {
		t.Errorf("the Secret that is named gives %v", err)
	}
}
