package writeback_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation/config/etcd"
	"isthmus.dev/isthmus/internal/leaderelection"
)

const services = "/apis/networking.istio.io/v1/namespaces/shop/virtualservices/"

func namedService(name, to string) string { return serviceIn("shop", name, to) }

func serviceIn(namespace, name, to string) string {
	return fmt.Sprintf(`{"apiVersion":"networking.istio.io/v1","kind":"VirtualService","metadata":{"name":%q,"namespace":%q},
		"spec":{"hosts":[%[1]q],"http":[{"route":[{"destination":{"host":%[3]q}}]}]}}`, name, namespace, to)
}

// awaitTrouble waits until the problem has the text; without a text, until there is none.
func (r *rig) awaitTrouble(code, text string, each func()) {
	r.t.Helper()
	testbed.WaitFor(r.t, 5*time.Minute, "the problem "+code, func() error {
		each()
		if p := r.trouble(code); (p == "") != (text == "") || !strings.Contains(p, text) {
			return fmt.Errorf("it is %q", p)
		}
		return nil
	})
}

// contestedStatus (G63): another controller that undoes what the hub writes is a problem of the
// object, and others are written.
func contestedStatus(t *testing.T, server *testbed.Kube) {
	server.Apply(namedService("fought", "a"))
	r := newRig(t, server.Admin, true)
	r.read(written)
	r.awaitTrouble("STATUS_CONTESTED", "VirtualService shop/fought of cluster c1", func() {
		server.ApplyStatus(`{"apiVersion":"networking.istio.io/v1","kind":"VirtualService","metadata":{"name":"fought","namespace":"shop"},
			"status":{"conditions":[{"type":"example.com/Other","status":"True"}]}}`)
	})
	server.Apply(namedService("calm", "a"))
	says(t, server, services+"calm", `"type":"Reconciled"`)
	server.Apply(namedService("fought", "b")) // says something else then
	says(t, server, services+"fought", `"observedGeneration":2`, "example.com/Other")
	r.awaitTrouble("STATUS_CONTESTED", "", func() {})
}

const policy = `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicy","metadata":{"name":"status"},"spec":{
	"matchConstraints":{"resourceRules":[{"apiGroups":["networking.istio.io"],"apiVersions":["*"],"operations":["UPDATE"],"resources":["virtualservices/status"]}]},
	"validations":[{"expression":"object.metadata.name != 'refused'","message":"the status of this one is ours","reason":"Forbidden"}]}}`

const binding = `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicyBinding","metadata":{"name":"status"},
	"spec":{"policyName":"status","validationActions":["Deny"]}}`

// refusedObject (G64): what a policy of the cluster refuses (403) is a problem of the object
// with the server's words, and not of the account; others of its kind are written.
func refusedObject(t *testing.T, server *testbed.Kube) {
	server.Apply(policy, binding, namedService("refused", "a"))
	testbed.WaitFor(t, 5*time.Minute, "the policy", func() error {
		body := `{"apiVersion":"networking.istio.io/v1","kind":"VirtualService","metadata":{"name":"refused","namespace":"shop"},"status":{"conditions":[]}}`
		if answer := server.Do(http.MethodPatch, services+"refused/status?fieldManager=test&force=true",
			[]byte(body)); answer.Status != http.StatusForbidden {
			return fmt.Errorf("the answer is %d: %s", answer.Status, answer.Body)
		}
		return nil
	})
	r := newRig(t, server.Admin, true)
	r.read(written)
	r.awaitTrouble("STATUS_REFUSED", "VirtualService shop/refused of cluster c1: the API server does not accept the status", func() {})
	if p := r.trouble("STATUS_REFUSED") + r.trouble("STATUS_FORBIDDEN"); !strings.Contains(p, "the status of this one is ours") ||
		strings.Contains(p, "grant its account") {
		t.Errorf("the problem is %s", p)
	}
	server.Apply(namedService("welcome", "a"))
	says(t, server, services+"welcome", `"type":"Reconciled"`)
	server.Delete(binding, policy)
	says(t, server, services+"refused", `"type":"Reconciled"`)
	r.awaitTrouble("STATUS_REFUSED", "", func() {})
}

// cut is the store of a hub that can be cut off.
type cut struct {
	leaderelection.Record
	off  atomic.Bool
	took atomic.Bool // the hub was the leader once
}

var errCut = errors.New("the hub is gone")

func (c *cut) Load(ctx context.Context) ([]byte, int64, error) {
	if c.off.Load() {
		return nil, 0, errCut
	}
	return c.Record.Load(ctx)
}

func (c *cut) Save(ctx context.Context, value []byte, revision int64) (bool, error) {
	if c.off.Load() {
		return false, errCut
	}
	c.took.Store(true) // it may be, whatever comes back
	return c.Record.Save(ctx, value, revision)
}

// member is a hub of several over a real etcd.
type member struct {
	*rig
	record  *cut
	elector *leaderelection.Elector
	leave   func()
}

func newMember(t *testing.T, server *testbed.Kube, store *testbed.Etcd, name string) *member {
	t.Helper()
	s, err := etcd.Open(t.Context(), etcd.Options{Endpoints: []string{store.URL}, Patience: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	m := &member{record: &cut{Record: s.Shared("status")}}
	m.elector = leaderelection.New(leaderelection.Options{Hub: name, What: "status", Record: m.record, TTL: 2 * time.Second})
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() { _ = m.elector.Run(ctx) })
	m.leave = func() { cancel(); ended.Wait() }
	t.Cleanup(m.leave)
	m.rig = startRig(t, server.Admin, m.elector)
	m.read(`{"sources":[{"cluster":"c1","namespaces":["kept"],"status":true}]}`)
	return m
}

// killedLeader (G66): another hub writes on; nothing is written that is there already, and the
// hubs do not write against each other. They see a namespace of their own: what other tests
// left may be written by either.
func killedLeader(t *testing.T, server *testbed.Kube) {
	const kept = "/apis/networking.istio.io/v1/namespaces/kept/virtualservices/"
	store := testbed.StartEtcd(t, testbed.EtcdOptions{})
	server.Apply(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kept"}}`, serviceIn("kept", "owned", "a"))
	first := newMember(t, server, store, "one")
	testbed.WaitFor(t, 5*time.Minute, "the leader", func() error {
		if !first.elector.Leads() {
			return errors.New("nobody is")
		}
		return nil
	})
	second := newMember(t, server, store, "two")
	says(t, server, kept+"owned", `"type":"Reconciled"`, `"observedGeneration":1`)
	together(t, 1, first, second)
	first.record.off.Store(true) // it is killed: it releases nothing
	first.stop()
	first.leave()
	// On a machine that stops for seconds, the other one takes over while the first lives.
	if wrote, failed := second.counts.now(); wrote+failed != 0 && !second.record.took.Load() {
		t.Errorf("beside the leader, a hub wrote %d times and failed %d times", wrote, failed)
	}
	server.Apply(serviceIn("kept", "owned", "b"))
	says(t, server, kept+"owned", `"observedGeneration":2`)
	before, _ := object(t, server, kept+"owned")
	server.Apply(serviceIn("kept", "next", "a"))
	says(t, server, kept+"next", `"type":"Reconciled"`)
	if after, _ := object(t, server, kept+"owned"); after != before {
		t.Error("the status of an object was written again without a change")
	}
	together(t, 3, first, second)
}

// together waits until the hubs have counted that many writes; there must not be more.
func together(t *testing.T, want int, hubs ...*member) {
	t.Helper()
	var all int
	testbed.WaitFor(t, 5*time.Minute, fmt.Sprintf("%d writes", want), func() error {
		all = 0
		for _, h := range hubs {
			wrote, _ := h.counts.now()
			all += wrote
		}
		if all < want {
			return fmt.Errorf("there are %d", all)
		}
		return nil
	})
	if all != want {
		t.Errorf("%d statuses were written for %d changes", all, want)
	}
}
