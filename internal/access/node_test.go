package access

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/identity/authority"
)

func TestS18R04ANodeMustBeWhatWasProven(t *testing.T) {
	w := newFixture(map[federation.ClusterID]AttachState{
		"c1": {Attached: true}, "c2": {Attached: true},
		"foreign": {Attached: true, TrustDomain: "other.example"},
	})
	of := func(clusters ...federation.ClusterID) Caller {
		return Caller{Workload: workload("shop", "web"), Clusters: clusters}
	}
	const own, other = "10.0.0.7", "10.0.0.8"
	at := func(address string, accounts ...string) map[string][]string {
		return map[string][]string{address: accounts}
	}
	good := Node{
		ID: "sidecar~10.0.0.7~web-1.shop~shop.svc.cluster.local", Name: "web-1.shop", Cluster: "c1", Namespace: "shop",
		ServiceAccount: "web", Addresses: []netip.Addr{netip.MustParseAddr(own)},
	}
	bound := of("c1")
	bound.Pod = "web-1"
	for name, c := range map[string]struct {
		identity Caller
		change   func(*Node)
		accounts map[string][]string // of the workloads at the node's addresses
		want     string              // of the reason; empty: it is allowed
	}{
		"good":                    {of("c1"), func(*Node) {}, nil, ""},
		"one of several clusters": {of("c1", "c2"), func(*Node) {}, nil, ""},
		"account not said":        {of("c1"), func(n *Node) { n.ServiceAccount = "" }, nil, ""},
		"the pod of the token":    {bound, func(*Node) {}, nil, ""},
		"a workload known there":  {of("c1"), func(*Node) {}, at(own, "shop/web"), ""},
		"the hub's own cluster":   {of("hub"), func(n *Node) { n.Cluster = "hub" }, nil, ""},
		"another trust domain": {
			of("foreign"), func(n *Node) { n.Cluster = "foreign" }, nil,
			`trust domain of the cluster "foreign" is "other.example"`,
		},
		"other cluster":              {of("c1"), func(n *Node) { n.Cluster = "c2" }, nil, `cluster "c2", and it is proven to be of "c1"`},
		"no cluster":                 {of("c1"), func(n *Node) { n.Cluster = "" }, nil, "CLUSTER_ID"},
		"cluster not proven":         {of(), func(*Node) {}, nil, "does not prove its cluster"},
		"cluster that is gone":       {of("c9"), func(n *Node) { n.Cluster = "c9" }, nil, `no cluster "c9" is attached`},
		"other namespace":            {of("c1"), func(n *Node) { n.Namespace = "infra" }, nil, `namespace "infra"`},
		"no namespace":               {of("c1"), func(n *Node) { n.Namespace = "" }, nil, `namespace ""`},
		"other account":              {of("c1"), func(n *Node) { n.ServiceAccount = "admin" }, nil, `service account is "admin"`},
		"namespace in ID":            {of("c1"), func(n *Node) { n.Name = "web-1.infra" }, nil, "NAME.shop"},
		"no namespace in ID":         {of("c1"), func(n *Node) { n.Name = "web-1" }, nil, "NAME.shop"},
		"another pod":                {bound, func(n *Node) { n.Name = "web-2.shop" }, nil, "web-1.shop"},
		"another workload's address": {of("c1"), func(*Node) {}, at(own, "shop/admin"), "does not run as shop/web"},
		"another's address besides": {
			of("c1"), func(n *Node) { n.Addresses = append(n.Addresses, netip.MustParseAddr(other)) },
			map[string][]string{own: {"shop/web"}, other: {"infra/gateway"}},
			"address 10.0.0.8",
		},
	} {
		n := good
		c.change(&n)
		w.accounts = c.accounts
		err := w.Allow(c.identity, n)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// Certificates are for workloads of exactly one cluster that is attached.
func TestS01CertificatesAreForAKnownCluster(t *testing.T) {
	w := newFixture(map[federation.ClusterID]AttachState{
		"c1": {Attached: true}, "c2": {Attached: true},
		"foreign": {Attached: true, TrustDomain: "other.example"},
	})
	for want, clusters := range map[string][]federation.ClusterID{
		"": {"c1"}, "nothing proves the cluster": {"c1", "c2"}, "show a token": nil, `no cluster "c9"`: {"c9"}, "is another": {"foreign"},
	} {
		home, err := w.CertificateCluster(Caller{Workload: workload("shop", "web"), Clusters: clusters})
		if want == "" && (err != nil || home != "c1") || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v: %q, %v, want %q", clusters, home, err, want)
		}
	}
}

// TestU55AnExpiredTokenTakesNothingFromACertificate: a machine shows the token of its first start beside the certificate that it renews.
// The token counts neither for it nor against it.
func TestU55AnExpiredTokenTakesNothingFromACertificate(t *testing.T) {
	w, asked := reviewed(t, true)
	w.proofs["web"] = authority.Proof{Workload: workload("shop", "web"), Clusters: []federation.ClusterID{"c1"}, Ends: w.now.Add(time.Hour)}
	w.proofs["rootless"] = authority.Proof{Workload: workload("shop", "web"), Ends: w.now.Add(time.Hour)}
	over := forged("isthmus", w.now.Add(-time.Second))
	for range 100 { // more than the failures that lock a caller out
		got, err := w.Identify(call{certificate: "web", token: over, cluster: "c1"}.context(t))
		if err != nil || got.Workload != workload("shop", "web") || !got.Certified || !got.Ends.Equal(w.now.Add(time.Hour)) {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	if got, err := w.Identify(call{certificate: "rootless", token: over, cluster: "c1"}.context(t)); err != nil || len(got.Clusters) > 0 {
		t.Errorf("the token gives the cluster %q, %v", got.Clusters, err)
	}
	if _, err := w.Identify(call{token: over, cluster: "c1"}.context(t)); status.Code(err) != codes.Unauthenticated {
		t.Errorf("the token alone: %v", err)
	}
	if n := asked.reviews(); n > 0 {
		t.Errorf("the cluster was asked %d times", n)
	}
}

// TestU40AnExpiredTokenIsLogged: a few times, with the workload and when it expired, and never the token. The caller knows it, for
// those who tell its owner what to do.
func TestU40AnExpiredTokenIsLogged(t *testing.T) {
	w, _ := reviewed(t, true)
	w.proofs["web"] = authority.Proof{Workload: workload("shop", "web"), Clusters: []federation.ClusterID{"c1"}, Ends: w.now.Add(time.Hour)}
	expired := w.now.Add(-time.Hour).Truncate(time.Second)
	over := forged("isthmus", expired)
	for range 100 {
		got, err := w.Identify(call{certificate: "web", token: over, cluster: "c1"}.context(t))
		if err != nil || !got.Expired.Equal(expired) {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	if got, err := w.Identify(call{certificate: "web"}.context(t)); err != nil || !got.Expired.IsZero() {
		t.Errorf("without a token: %+v, %v", got, err)
	}
	log := w.log.String()
	if n := strings.Count(log, "level=INFO"); n == 0 || n > 10 || strings.Count(log, "\n") != n {
		t.Errorf("%d lines:\n%s", n, log)
	}
	for _, want := range []string{"an expired token", "workload=" + workload("shop", "web").String(), "expired=" + expired.Format("2006-01-02T15:04:05")} {
		if !strings.Contains(log, want) {
			t.Errorf("no %q in\n%s", want, log)
		}
	}
	if strings.Contains(log, string(over)) {
		t.Error("the log has the token")
	}
}

// A certificate and a token of one caller must be of one workload (S8).
func TestS08TwoMethodsMustAgree(t *testing.T) {
	w, _ := reviewed(t, true)
	soon := w.now.Add(time.Minute)
	w.proofs["web"] = authority.Proof{Workload: workload("shop", "web"), Clusters: []federation.ClusterID{"c1"}, Ends: soon}
	w.proofs["rootless"] = authority.Proof{Workload: workload("shop", "web"), Ends: soon}
	w.proofs["admin"] = authority.Proof{Workload: workload("shop", "admin"), Clusters: []federation.ClusterID{"c1"}, Ends: soon}
	w.proofs["elsewhere"] = authority.Proof{Workload: workload("shop", "web"), Clusters: []federation.ClusterID{"c2"}, Ends: soon}
	token := forged("isthmus", w.now.Add(time.Hour))
	for name, c := range map[string]struct {
		call
		ok bool
	}{
		"certificate alone":                    {call{certificate: "web"}, true},
		"both":                                 {call{certificate: "web", token: token, cluster: "c1"}, true},
		"a cluster by the token":               {call{certificate: "rootless", token: token, cluster: "c1"}, true},
		"other workload":                       {call{certificate: "admin", token: token, cluster: "c1"}, false},
		"other cluster":                        {call{certificate: "elsewhere", token: token, cluster: "c1"}, false},
		"strange certificate":                  {call{certificate: "stranger"}, false},
		"strange, and a good token":            {call{certificate: "stranger", token: token, cluster: "c1"}, false},
		"good, and a bad token":                {call{certificate: "web", token: "x", cluster: "c1"}, false},
		"a token of another that has expired":  {call{certificate: "admin", token: forged("isthmus", w.now), cluster: "c1"}, true},
		"a token of another that is about to":  {call{certificate: "admin", token: forged("isthmus", w.now.Add(time.Second)), cluster: "c1"}, false},
		"a token of another without an expiry": {call{certificate: "admin", token: forged("isthmus", time.Unix(0, 0)), cluster: "c1"}, false},
	} {
		got, err := w.Identify(c.context(t))
		if (err == nil) != c.ok || err != nil && status.Code(err) != codes.Unauthenticated {
			t.Errorf("%s: %v", name, err)
		}
		if c.ok && (!got.Certified || !got.Ends.Equal(soon)) {
			t.Errorf("%s: %+v", name, got)
		}
		if cluster, one := got.Cluster(); c.ok && (!one || cluster != "c1") {
			t.Errorf("%s: of the cluster %q", name, cluster)
		}
	}
}
