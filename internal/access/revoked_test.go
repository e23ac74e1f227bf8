package access

import (
	"errors"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/identity/authority"
)

var errStillAllowed = errors.New("it is still allowed")

var webNode = Node{ID: "sidecar~10.0.0.7~web-1.shop~shop.svc.cluster.local", Name: "web-1.shop", Cluster: "c1", Namespace: "shop"}

// TestF84CertificatesOfRootsThatAreTrustedNoMore: what a certificate proved counts
// for as long as it would be trusted now.
func TestF84CertificatesOfRootsThatAreTrustedNoMore(t *testing.T) {
	proof := authority.Proof{Workload: workload("shop", "web"), Clusters: []federation.ClusterID{"c1"}, Ends: time.Now().Add(time.Hour)}
	for name, c := range map[string]struct {
		change func(*fixture)
		want   string // of the reason; empty: it goes on
	}{
		"nothing changed":  {func(*fixture) {}, ""},
		"its root is gone": {func(w *fixture) { delete(w.proofs, "web") }, "counts no more: the client's certificate"},
		"its root is another's now": {
			func(w *fixture) { p := proof; p.Clusters = []federation.ClusterID{"c2"}; w.proofs["web"] = p },
			"no longer proves membership",
		},
		"its root is of no cluster": {func(w *fixture) { p := proof; p.Clusters = nil; w.proofs["web"] = p }, "no longer proves membership"},
		"its cluster is detached":   {func(w *fixture) { delete(w.clusters, "c1") }, `no cluster "c1" is attached`},
	} {
		w := newFixture(map[federation.ClusterID]AttachState{"c1": {Attached: true}})
		w.proofs["web"] = proof
		who, err := w.Identify(call{certificate: "web"}.context(t))
		if err != nil || w.Allow(who, webNode) != nil {
			t.Fatalf("%s: at first it is %v, %v", name, err, w.Allow(who, webNode))
		}
		c.change(w)
		if err := w.Allow(who, webNode); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestF84RevokedTokens: the cluster is asked again for as long as the stream goes
// on. That it does not answer revokes nothing.
func TestF84RevokedTokens(t *testing.T) {
	w, cluster := reviewed(t, true)
	who, err := w.Identify(call{token: forged("isthmus", w.now.Add(time.Hour)), cluster: "c1"}.context(t))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := w.Allow(who, webNode); err != nil || cluster.reviews() != 1 {
			t.Fatalf("a fresh answer: %v after %d reviews", err, cluster.reviews())
		}
	}
	cluster.mu.Lock()
	cluster.accept = false
	cluster.mu.Unlock()
	w.now = w.now.Add(reviewAgain)
	if err := w.Allow(who, webNode); err != nil {
		t.Errorf("while it is reviewed: %v", err)
	}
	testbed.WaitFor(t, 5*time.Minute, "the token to be refused", func() error {
		err := w.Allow(who, webNode)
		if err == nil {
			return errStillAllowed
		}
		if !strings.Contains(err.Error(), "counts no more: the cluster does not accept the token") || strings.Contains(err.Error(), "e30.") {
			t.Fatalf("the reason is %v", err)
		}
		return nil
	})
	if n := cluster.reviews(); n != 2 {
		t.Errorf("the cluster was asked %d times, want twice", n)
	}
}

// TestF84SilentClustersRevokeNothing.
func TestF84SilentClustersRevokeNothing(t *testing.T) {
	w, _ := reviewed(t, true)
	who, err := w.Identify(call{token: forged("isthmus", w.now.Add(time.Hour)), cluster: "c1"}.context(t))
	if err != nil {
		t.Fatal(err)
	}
	w.attach(t, "c1", newReviewer(t, true))() // the link is gone
	w.now = w.now.Add(time.Minute)
	for range 3 {
		if err := w.Allow(who, webNode); err != nil {
			t.Errorf("without a link to its cluster: %v", err)
		}
	}
}
