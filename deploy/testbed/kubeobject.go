package testbed

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// Do sends one request as the administrator. The path is that of the API, such
// as /api/v1/namespaces; a PATCH is a server-side apply.
func (k *Kube) Do(method, path string, body []byte) Response {
	request, err := http.NewRequest(method, k.URL+path, bytes.NewReader(body))
	if err != nil {
		return Response{Err: err}
	}
	request.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/apply-patch+yaml")
	}
	return send(k.client, request)
}

// Apply creates or changes objects. A manifest holds one JSON or block-style
// YAML object, or several YAML ones separated by ---. It waits for kinds that are not
// served yet. A Namespace must be applied before the objects in it.
func (k *Kube) Apply(manifests ...string) {
	k.t.Helper()
	for _, o := range objectsIn(k.t, manifests) {
		k.patch(o, "")
	}
}

// ApplyStatus is Apply for the status of objects.
func (k *Kube) ApplyStatus(manifests ...string) {
	k.t.Helper()
	for _, o := range objectsIn(k.t, manifests) {
		k.patch(o, "/status")
	}
}

// Delete removes the objects that the manifests name; one that does not exist
// ends the test.
func (k *Kube) Delete(manifests ...string) {
	k.t.Helper()
	for _, o := range objectsIn(k.t, manifests) {
		if err := k.Do(http.MethodDelete, pathOf(k, o), nil).failed(); err != nil {
			k.t.Fatalf("deleting %s %s/%s: %v", o.kind, o.namespace, o.name, err)
		}
	}
}

// GrantRead lets a user of the options read everything; Delete of the
// ClusterRoleBinding read-NAME takes that away.
func (k *Kube) GrantRead(user string) {
	k.t.Helper()
	name := "read-" + user
	k.Apply(fmt.Sprintf(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":%q},
		"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["get","list","watch"]}]}`, name),
		fmt.Sprintf(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":%q},
		"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":%q},
		"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":%q}]}`, name, name, user))
}

// objectsIn are the objects of the manifests.
func objectsIn(t testing.TB, manifests []string) []object {
	t.Helper()
	var all []object
	for _, manifest := range manifests {
		for _, text := range documents(manifest) {
			parsed, err := parseObject(text)
			if err != nil {
				t.Fatalf("reading a manifest: %v: %.200s", err, text)
			}
			all = append(all, parsed)
		}
	}
	return all
}

func (k *Kube) patch(o object, subresource string) {
	k.t.Helper()
	path := pathOf(k, o) + subresource + "?fieldManager=testbed&force=true"
	if err := k.Do(http.MethodPatch, path, []byte(o.text)).failed(); err != nil {
		k.t.Fatalf("applying %s %s/%s: %v", o.kind, o.namespace, o.name, err)
	}
}

// pathOf asks the API server how the kind is named in paths.
func pathOf(k *Kube, o object) string {
	k.t.Helper()
	base := "/apis/" + o.version
	if !strings.Contains(o.version, "/") {
		base = "/api/" + o.version
	}
	var path string
	WaitFor(k.t, readyLimit, "the API server to serve "+o.version+" "+o.kind, func() error {
		answer := k.Do(http.MethodGet, base, nil)
		if err := answer.failed(); err != nil {
			return err
		}
		found, err := resourcePath(answer.Body, o)
		path = base + found
		return err
	})
	return path
}

func resourcePath(discovery []byte, o object) (string, error) {
	var list struct {
		Resources []struct {
			Name, Kind string
			Namespaced bool
		}
	}
	if err := json.Unmarshal(discovery, &list); err != nil {
		return "", err
	}
	for _, resource := range list.Resources {
		if resource.Kind != o.kind || strings.Contains(resource.Name, "/") {
			continue
		}
		path := "/" + resource.Name + "/" + url.PathEscape(o.name)
		if !resource.Namespaced {
			return path, nil
		}
		if o.namespace == "" {
			o.namespace = "default"
		}
		return "/namespaces/" + o.namespace + path, nil
	}
	return "", fmt.Errorf("it has no kind %s", o.kind)
}
