package status_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	kubejson "k8s.io/apimachinery/pkg/util/json"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/crd"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/internal/kube/listwatch/listwatchtest"
)

// cluster has objects with a status, and tells of each change as a watch does. While it is compared, it
// notes what somebody wants to write, and refuses it.
type cluster struct {
	to func(*crd.Original)

	mu       sync.Mutex
	version  int
	objects  map[string]*crd.Original // by the path of their status
	read     bool                     // with its status, which is written
	compared bool
	wanted   map[string]string // while it is compared: what was to be written, by path
}

func resourceOf(key federation.ObjectKey) apischema.GroupVersionResource {
	return apischema.GroupVersionResource{Group: key.Group, Version: "v1", Resource: strings.ToLower(key.Kind) + "s"}
}

func pathOf(key federation.ObjectKey) string {
	at := "/apis/" + key.Group + "/v1/"
	if key.Namespace != "" {
		at += "namespaces/" + key.Namespace + "/"
	}
	return at + resourceOf(key).Resource + "/" + key.Name + "/status"
}

// put has the cluster have another form of an object. It is not valid if the manifest is empty.
func (c *cluster) put(key federation.ObjectKey, uid string, manifest []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version++
	next := &crd.Original{Cluster: "c1", Key: key, Resource: resourceOf(key), UID: uid}
	if before := c.objects[pathOf(key)]; before != nil {
		next.Generation, next.Status = before.Generation, before.Status
		next.Ours, next.Manifest = before.Ours, before.Manifest
	}
	next.Generation, next.Version = next.Generation+1, strconv.Itoa(c.version)
	if len(manifest) > 0 {
		next.Manifest = manifest
	} else {
		next.Problems = []schema.Problem{{Code: "INVALID", Field: "spec", Message: "it is wrong"}}
		next.Spec = map[string]any{"parentRefs": []any{map[string]any{"name": "edge"}}, "gatewayClassName": "mesh"}
	}
	c.objects[pathOf(key)] = next
	c.tell(next)
}

// tell has the hub read an object; the caller holds mu.
func (c *cluster) tell(o *crd.Original) {
	if c.read {
		c.to(o)
	}
}

// follow has the hub read the objects with their status, or no more.
func (c *cluster) follow(is bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	again := is && !c.read
	c.read = is
	for _, o := range c.objects {
		if again {
			c.tell(o)
		}
	}
}

func (c *cluster) remove(key federation.ObjectKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.objects, pathOf(key))
}

func (c *cluster) originals() []*crd.Original {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.objects))
}

// compare is what is wanted to be written while do runs.
func (c *cluster) compare(do func()) []string {
	set := func(compared bool) map[string]string {
		c.mu.Lock()
		defer c.mu.Unlock()
		before := c.wanted
		c.compared, c.wanted = compared, map[string]string{}
		return before
	}
	set(true)
	do()
	return slices.Sorted(maps.Values(set(false)))
}

// answer answers the requests of who writes a status; nil: it is another request.
func (c *cluster) answer(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodPatch {
		return nil, nil
	}
	var body struct {
		Metadata struct{ UID, ResourceVersion string }
		Status   json.RawMessage
	}
	patch := map[string]any{}
	if err := json.NewDecoder(request.Body).Decode(&body); err != nil {
		return nil, fmt.Errorf("reading a patch: %w", err)
	}
	if err := kubejson.Unmarshal(body.Status, &patch); err != nil {
		return nil, fmt.Errorf("reading a patch: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.objects[request.URL.Path]
	switch {
	case o == nil:
		return listwatchtest.Status(http.StatusNotFound, metav1.StatusReasonNotFound), nil
	case c.compared:
		before, _ := json.Marshal(o.Status)
		c.wanted[request.URL.Path] = fmt.Sprintf("%s: %s\n  instead of %s", request.URL.Path, body.Status, before)
		return listwatchtest.Status(http.StatusConflict, metav1.StatusReasonConflict), nil
	case o.UID != body.Metadata.UID || o.Version != body.Metadata.ResourceVersion:
		return listwatchtest.Status(http.StatusConflict, metav1.StatusReasonConflict), nil
	}
	c.version++
	next := *o
	next.Version, next.Ours, next.Status = strconv.Itoa(c.version), true, maps.Clone(o.Status)
	if next.Status == nil {
		next.Status = map[string]any{}
	}
	maps.Copy(next.Status, patch)
	maps.DeleteFunc(next.Status, func(_ string, value any) bool { return value == nil })
	c.objects[request.URL.Path] = &next
	c.tell(&next)
	return listwatchtest.JSON(http.StatusOK, map[string]any{
		"apiVersion": o.Key.Group + "/v1", "kind": o.Key.Kind, "status": next.Status, "metadata": map[string]any{
			"name": o.Key.Name, "namespace": o.Key.Namespace, "uid": o.UID, "resourceVersion": next.Version, "generation": o.Generation,
			"managedFields": []any{map[string]any{"manager": crd.StatusManager, "subresource": "status", "operation": "Update"}},
		},
	}), nil
}
