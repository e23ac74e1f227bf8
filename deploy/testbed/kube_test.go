package testbed

import (
	"net/http"
	"strings"
	"testing"
)

const shopManifest = `# A comment before the first object.
---
apiVersion: v1
kind: Namespace
metadata:
  name: shop
---
apiVersion: v1
kind: Service
metadata:
  labels:
    name: other
  name: web
  namespace: shop
spec:
  ports:
  - name: http
    port: 80
`

const sliceManifest = `{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","addressType":"IPv4",
"metadata":{"name":"web-1","namespace":"shop","labels":{"kubernetes.io/service-name":"web"}},
"ports":[{"name":"http","port":8080}],"endpoints":[{"addresses":["10.1.0.7"]}]}`

const widgetManifest = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.test}
spec:
  group: example.test
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: example.test/v1
kind: Widget
metadata: {name: one, namespace: shop}
`

const (
	webPath    = "/api/v1/namespaces/shop/services/web"
	slicePath  = "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices/web-1"
	widgetPath = "/apis/example.test/v1/namespaces/shop/widgets/one"
)

func TestKubeServesObjectsAndUsers(t *testing.T) {
	t.Parallel()
	kube := StartKube(t, KubeOptions{Users: []KubeUser{{Name: "reader"}}})
	kube.Apply(shopManifest, sliceManifest, widgetManifest)
	for _, path := range []string{webPath, slicePath, widgetPath} {
		kube.wantStatus(t, path, http.StatusOK)
	}
	kube.Delete(sliceManifest)
	kube.wantStatus(t, slicePath, http.StatusNotFound)

	reader := kube.User("reader")
	if got := kube.statusAs(t, reader, webPath); got != http.StatusForbidden {
		t.Errorf("a user without rights gets status %d, want 403", got)
	}
	kube.GrantRead("reader")
	WaitFor(t, readyLimit, "the right to be effective", func() error {
		return send((*Namespace)(nil).Client(reader.tls(t)), reader.request(t, webPath)).failed()
	})
	reader.Token = "wrong"
	if got := kube.statusAs(t, reader, webPath); got != http.StatusUnauthorized {
		t.Errorf("a wrong token gets status %d, want 401", got)
	}
	for name, access := range map[string]Access{"certificate": kube.Admin, "token": kube.User("reader")} {
		text := string(access.Kubeconfig())
		if !strings.Contains(text, "certificate-authority-data: ") || strings.Contains(text, ": /") {
			t.Errorf("the kubeconfig with a %s is not inline:\n%s", name, text)
		}
	}
}

func TestKubeKeepsDataOverRestartsAndLosesItWhenReplaced(t *testing.T) {
	t.Parallel()
	kube := StartKube(t, KubeOptions{ExtraArgs: []string{"--watch-cache=false"}})
	kube.Apply(shopManifest)
	uid := kube.uid(t)

	kube.Kill()
	if answer := kube.Do(http.MethodGet, webPath, nil); answer.Err == nil {
		t.Errorf("a killed API server answers with status %d", answer.Status)
	}
	kube.Restart()
	kube.wantStatus(t, webPath, http.StatusOK)

	backup := kube.Etcd.Save()
	kube.Delete(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"web","namespace":"shop"}}`)
	kube.Stop()
	kube.Etcd.Load(backup)
	kube.Restart()
	kube.wantStatus(t, webPath, http.StatusOK)
	if got := kube.uid(t); got != uid {
		t.Errorf("after a restore the cluster is %s, want the same %s", got, uid)
	}

	kube.Replace()
	kube.wantStatus(t, webPath, http.StatusNotFound)
	if got := kube.uid(t); got == uid {
		t.Errorf("a replaced cluster is still %s", got)
	}
	group := kube.PID()
	kube.Stop()
	if err := gone(group); err != nil {
		t.Error(err)
	}
}

func TestKubeRunsInsideANetwork(t *testing.T) {
	t.Parallel()
	network := NewNetwork(t, "east", "10.1.0.0/24")
	master, hub := NewNamespace(t, "master"), NewNamespace(t, "hub")
	master.Join(network, "10.1.0.2")
	hub.Join(network, "10.1.0.3")
	kube := StartKube(t, KubeOptions{Namespace: master})
	if !strings.HasPrefix(kube.URL, "https://10.1.0.2:") {
		t.Errorf("the URL is %s, want one on the address of the namespace", kube.URL)
	}
	kube.Apply(shopManifest)
	answer := send(hub.Client(kube.Admin.tls(t)), kube.Admin.request(t, webPath))
	if err := answer.failed(); err != nil {
		t.Errorf("asking from another namespace: %v", err)
	}
}

func (k *Kube) wantStatus(t *testing.T, path string, want int) {
	t.Helper()
	if answer := k.Do(http.MethodGet, path, nil); answer.Status != want {
		t.Errorf("getting %s: status %d, %v, want %d", path, answer.Status, answer.Err, want)
	}
}

func (k *Kube) uid(t *testing.T) string {
	t.Helper()
	var namespace struct{ Metadata struct{ UID string } }
	k.Do(http.MethodGet, "/api/v1/namespaces/kube-system", nil).Decode(t, &namespace)
	return namespace.Metadata.UID
}

func (k *Kube) statusAs(t *testing.T, access Access, path string) int {
	t.Helper()
	answer := send((*Namespace)(nil).Client(access.tls(t)), access.request(t, path))
	if answer.Err != nil {
		t.Fatal(answer.Err)
	}
	return answer.Status
}

func (a Access) request(t *testing.T, path string) *http.Request {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, a.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if a.Token != "" {
		request.Header.Set("Authorization", "Bearer "+a.Token)
	}
	return request
}
