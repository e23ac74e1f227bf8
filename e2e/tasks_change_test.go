package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
)

// testChangeUnderLoad moves all requests from one version to another and back
// while they are coming.
func testChangeUnderLoad(t *testing.T, w *tasks) {
	w.task(t, "reviews-v1")
	w.only(t, "v1")
	ask := func() error { _, err := w.reviews(); return err }
	requests := keepAsking(10*time.Millisecond, ask, ask)
	for _, version := range []string{"v2", "v3", "v1", "v2"} {
		w.task(t, "reviews-"+version)
		w.only(t, version)
	}
	requests.finish(t)
}

func testRollback(t *testing.T, w *tasks) {
	before := w.task(t, "reviews-v1")
	w.only(t, "v1")
	w.task(t, "ratings-abort")
	eventually(t, "an abort", func() testbed.Response { return w.ratings("end-user", "jason") },
		func(r testbed.Response) bool { return r.Status == 500 })
	back := w.hub.change(t, "rollback", map[string]any{"to": before.Revision, "waitFor": untilAcked}).complete(t)
	if len(back.Changes) != 3 || back.Revision == before.Revision {
		t.Errorf("the rollback is revision %s with %+v; want two objects back and one gone", back.Revision, back.Changes)
	}
	w.only(t, "v1")
	eventually(t, "no abort", func() testbed.Response { return w.ratings("end-user", "jason") }, status(200))
}

// nowhere is a DestinationRule that is valid and that no proxy can take: the
// file is not there.
const nowhere = `apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: ratings, namespace: shop}
spec:
  host: ratings
  trafficPolicy:
    tls: {mode: SIMPLE, caCertificates: /nowhere/ca.pem}
`

// testRejected applies what passes every check and Envoy refuses all the same.
func testRejected(t *testing.T, w *tasks) {
	w.task(t, "reviews-v1")
	eventually(t, "ratings", func() testbed.Response { return w.ratings() }, status(200))
	clock, began := testbed.StartClock(t), time.Now()
	out := w.hub.change(t, "apply", map[string]any{"manifests": []string{nowhere}, "set": "task", "waitFor": untilAcked})
	r := out.Rollout
	if r == nil || r.Rejected == 0 || r.Reached == nil || *r.Reached {
		t.Fatalf("the rollout is %+v; want it rejected", r)
	}
	if took := clock.Since(began); took > 5*time.Second {
		t.Errorf("the rejection was told after %s", took)
	}
	named := func(of []proxyRollout, node string) error {
		for _, p := range of {
			if strings.Contains(p.NodeID, node) && p.State == "REJECTED" && strings.Contains(p.Error, "/nowhere/ca.pem") {
				return nil
			}
		}
		return fmt.Errorf("no proxy %s is named with Envoy's words: %+v", node, of)
	}
	if err := named(r.Proxies.Nodes, ""); err != nil {
		t.Error(err)
	}
	testbed.WaitFor(t, within, "the object's status", func() error {
		s, err := w.hub.status("DestinationRule", "ratings")
		return errors.Join(err, named(s.Proxies.Nodes, "productpage"), named(s.Proxies.Nodes, "ingress"))
	})
	for range 10 {
		if r := w.ratings(); r.Status != 200 {
			t.Errorf("with the last good resource ratings answers %d, %v", r.Status, r.Err)
		}
	}
	input := w.input(t, "reviews-v2")
	delete(input, "prune") // other changes go on beside it
	w.hub.change(t, "apply", input).complete(t)
	w.only(t, "v2")
	healed := strings.ReplaceAll(nowhere, "tls: {mode: SIMPLE, caCertificates: /nowhere/ca.pem}", "connectionPool: {tcp: {maxConnections: 7}}")
	w.hub.change(t, "apply", map[string]any{"manifests": []string{healed}, "set": "task", "waitFor": untilAcked}).complete(t)
	if s, err := w.hub.status("DestinationRule", "ratings"); err != nil || s.Rejected != 0 || s.Acked == 0 {
		t.Errorf("the healed object's status is %+v, %v", s, err)
	}
}

type registration struct {
	Registration *struct{ ExpiresAt time.Time }
	UserErrors   []struct{ Code, Message string }
}

// register carries out one of the mutations about registered workloads.
func (w *tasks) register(t *testing.T, mutation string, input map[string]any) time.Time {
	t.Helper()
	typ := strings.ToUpper(mutation[:1]) + mutation[1:] + "Input!"
	data, err := w.hub.operate("mutation($input: "+typ+") { "+mutation+
		"(input: $input) { registration { expiresAt } userErrors { code message } } }", map[string]any{"input": input})
	var answer map[string]registration
	if err == nil {
		err = json.Unmarshal(data, &answer)
	}
	if err != nil || answer[mutation].Registration == nil {
		t.Fatalf("%s: %s, %v", mutation, data, err)
	}
	return answer[mutation].Registration.ExpiresAt
}

// testRegisteredWorkload keeps a second machine of ratings alive for longer than
// its time by renewing it, and then lets go.
func testRegisteredWorkload(t *testing.T, w *tasks) {
	who := map[string]any{"namespace": "shop", "name": "ratings-v2"}
	first := w.register(t, "registerWorkload", map[string]any{
		"namespace": "shop", "name": "ratings-v2", "address": appAddresses["ratings-v2"], "ttl": "8s",
		"labels": []map[string]any{{"key": "app", "value": "ratings"}, {"key": "version", "value": "v2"}},
	})
	answers := func(n int) map[string]int {
		counts := map[string]int{}
		for range n {
			r := w.ratings()
			if r.Err != nil || r.Status != 200 {
				t.Fatalf("ratings answers %d, %v", r.Status, r.Err)
			}
			counts[r.Echo(t).Name]++
		}
		return counts
	}
	testbed.WaitFor(t, within, "answers of the registered workload", func() error {
		w.register(t, "renewWorkload", who)
		if counts := answers(4); counts["ratings-v2"] == 0 {
			return fmt.Errorf("answers are %v", counts)
		}
		return nil
	})
	last := first
	renewals := time.NewTicker(time.Second)
	defer renewals.Stop()
	for time.Now().Before(first.Add(2 * time.Second)) {
		<-renewals.C
		last = w.register(t, "renewWorkload", who)
		if counts := answers(10); counts["ratings-v2"] == 0 || counts["ratings-v1"] == 0 {
			t.Errorf("while it is renewed, answers are %v", counts)
		}
	}
	testbed.WaitFor(t, time.Until(last)+patience, "the workload to be gone", func() error {
		if counts := answers(6); counts["ratings-v2"] > 0 {
			return fmt.Errorf("answers are %v", counts)
		}
		return nil
	})
	if early := time.Until(last); early > time.Second {
		t.Errorf("it went %s before its time", early)
	}
}
