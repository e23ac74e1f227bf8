package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

type objectRef struct {
	Group     string `json:"group"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

type proxyRollout struct{ NodeID, State, Error string }

// outcome is the result of a change.
type outcome struct {
	Revision string
	Changes  []struct {
		Action string
		Object objectRef
		Diff   string
	}
	Preview *struct {
		Proxies   []struct{ NodeID string }
		Resources []struct{ TypeURL, Name, Action, Diff string }
	}
	Rollout *struct {
		Delivered, Acked, Rejected, Pending int
		Reached                             *bool
		Proxies                             struct{ Nodes []proxyRollout }
	}
	UserErrors []struct{ Code, Message, Field string }
}

const outcomeFields = `{
	revision changes { action object { group kind namespace name } diff }
	preview { proxies { nodeID } resources { typeUrl name action diff } }
	rollout { delivered acked rejected pending reached proxies { nodes { nodeID state error } } }
	userErrors { code message field }
}`

// change carries out a mutation whose payload is an outcome; a refusal ends the
// test.
func (h *hub) change(t *testing.T, mutation string, input map[string]any) outcome {
	t.Helper()
	typ := strings.ToUpper(mutation[:1]) + mutation[1:] + "Input!"
	data, err := h.operate("mutation($input: "+typ+") { "+mutation+"(input: $input) "+outcomeFields+" }", map[string]any{"input": input})
	if err != nil {
		t.Fatalf("%s: %v", mutation, err)
	}
	var answer map[string]outcome
	if err := json.Unmarshal(data, &answer); err != nil {
		t.Fatal(err)
	}
	out := answer[mutation]
	if len(out.UserErrors) > 0 {
		t.Fatalf("%s is refused: %+v", mutation, out.UserErrors)
	}
	return out
}

var untilAcked = map[string]any{"state": "ACKED", "timeout": "60s"}

// complete wants every affected proxy to have accepted the change.
func (o outcome) complete(t *testing.T) outcome {
	t.Helper()
	if r := o.Rollout; r == nil || r.Reached == nil || !*r.Reached || r.Rejected > 0 || r.Pending > 0 {
		t.Fatalf("the change is not with every proxy: %+v", r)
	}
	return o
}

// manifest is a file of testdata, with the folder of the caller's Envoy.
func (w *tasks) manifest(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "tasks", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), testbed.DirPlaceholder, w.caller.envoy.Dir)
}

// task makes the manifests of a file the only ones of the present task and
// returns when every proxy has them.
func (w *tasks) task(t *testing.T, name string) outcome {
	t.Helper()
	return w.hub.change(t, "apply", w.input(t, name)).complete(t)
}

// keep applies the manifests of a file beside those of tasks.
func (w *tasks) keep(t *testing.T, name string) {
	t.Helper()
	w.hub.change(t, "apply", map[string]any{"manifests": []string{w.manifest(t, name)}, "set": name, "waitFor": untilAcked}).complete(t)
}

func (w *tasks) input(t *testing.T, name string) map[string]any {
	return map[string]any{"manifests": []string{w.manifest(t, name)}, "set": "task", "prune": true, "message": name, "waitFor": untilAcked}
}

type objectStatus struct {
	Acked, Rejected, Pending int
	Proxies                  struct{ Nodes []proxyRollout }
	NotHonoured              []struct{ Field, Reason string }
}

// status is the status of an object in the mesh.
func (h *hub) status(kind, name string) (objectStatus, error) {
	var a struct {
		ConfigObjects struct {
			Nodes []struct{ Status objectStatus }
		}
	}
	err := h.query(fmt.Sprintf(`{ configObjects(filter: {kind: %q, name: %q}) { nodes { status {
		acked rejected pending proxies { nodes { nodeID state error } } notHonoured { field reason }
	} } } }`, kind, name), &a)
	if err == nil && len(a.ConfigObjects.Nodes) != 1 {
		err = fmt.Errorf("there are %d objects %s %s", len(a.ConfigObjects.Nodes), kind, name)
	}
	if err != nil {
		return objectStatus{}, err
	}
	return a.ConfigObjects.Nodes[0].Status, nil
}

// supported wants every field of the object to be supported.
func (h *hub) supported(t *testing.T, o objectRef) {
	t.Helper()
	s, err := h.status(o.Kind, o.Name)
	if err != nil || len(s.NotHonoured) > 0 {
		t.Errorf("%s %s: %+v, %v", o.Kind, o.Name, s.NotHonoured, err)
	}
}

// within is how long a change that every proxy has may take to reach the threads
// that serve requests.
const within = patience
