package federation

import (
	"fmt"
	"strings"
	"testing"
)

func peer(address, account string) Endpoint {
	e := endpoint(address, 8080)
	e.TLSMode, e.ServiceAccount = MutualTLS, account
	return e
}

func peersText(s *Service) string {
	var all []string
	for _, p := range s.Peers {
		all = append(all, fmt.Sprintf("%s on %s: %s", p.Cluster, p.Network, strings.Join(p.Accounts, " ")))
	}
	return strings.Join(all, "; ")
}

// Accounts are kept apart by cluster: what runs in one cluster is never held to be
// what only another one runs.
func TestPeersAreKeptApartByCluster(t *testing.T) {
	k := key("web.shop", "shop")
	plain := endpoint("10.0.0.9", 8080)
	plain.ServiceAccount = "shop/other"
	entry := web("")
	entry.Endpoints, entry.ServiceAccounts = []Endpoint{peer("10.0.2.1", "shop/two")}, []string{"spiffe://x/y"}
	first := web("")
	first.Endpoints = []Endpoint{peer("10.0.0.1", "shop/one"), peer("10.0.0.2", "shop/one"), plain}
	s := after(set(shardOf("c1"), map[ServiceKey]*Shard{k: first}), set(shardOf("c2"), map[ServiceKey]*Shard{k: entry}))
	if got, want := peersText(mustService(t, s, k)), "c1 on default: shop/one; c2 on default: shop/two spiffe://x/y"; got != want {
		t.Errorf("the peers are %q, want %q", got, want)
	}
}

// Endpoints that go and come back are a change of endpoints alone; another
// account is one of accounts, of whichever cluster.
func TestSeed62PeersOutliveTheirEndpoints(t *testing.T) {
	k := key("web.shop", "shop")
	say := func(s *Snapshot, endpoints ...Endpoint) (*Snapshot, Reason) {
		shard := web("")
		shard.Endpoints = endpoints
		now, changes := Next(s, set(shardOf("c1"), map[ServiceKey]*Shard{k: shard}))
		if len(changes.Services) == 0 {
			return now, 0
		}
		return now, changes.Services[0].Reasons
	}
	other := web("")
	other.Endpoints = []Endpoint{peer("10.0.2.1", "shop/one"), peer("10.0.2.2", "shop/two")}
	s, _ := say(after(set(shardOf("c2"), map[ServiceKey]*Shard{k: other})), peer("10.0.0.1", "shop/one"))
	for range 10 {
		for _, endpoints := range [][]Endpoint{nil, {peer("10.0.0.1", "shop/one")}} {
			var reasons Reason
			s, reasons = say(s, endpoints...)
			if reasons != ReasonEndpoints {
				t.Fatalf("%d endpoints are a change of %s", len(endpoints), reasons)
			}
		}
	}
	if s, reasons := say(s, peer("10.0.0.1", "shop/two")); reasons != ReasonEndpoints|ReasonAccounts ||
		!strings.HasPrefix(peersText(mustService(t, s, k)), "c1 on default: shop/two;") {
		t.Errorf("an account of another cluster is a change of %s, the peers are %s", reasons, peersText(mustService(t, s, k)))
	}
	s, _ = Next(s, Edit{Source: shardOf("c1"), Services: Delta[ServiceKey, *Shard]{Gone: []ServiceKey{k}}})
	if got := peersText(mustService(t, s, k)); strings.Contains(got, "c1") {
		t.Errorf("a cluster without the service has peers of it: %s", got)
	}
}

func TestTrustDomainsAreThoseOfClusters(t *testing.T) {
	s, _ := Next(Empty(), Edit{Clusters: Delta[ClusterID, ClusterSpec]{Set: map[ClusterID]ClusterSpec{
		"c1": {},
		"c2": {TrustDomain: "two.example"},
	}}})
	r := s.Read()
	if a, b, all := r.TrustDomain("c1"), r.TrustDomain("c2"), strings.Join(r.TrustDomains(), " "); a != "cluster.local" ||
		b != "two.example" || all != "cluster.local two.example" {
		t.Errorf("the trust domains are %q, %q and together %q", a, b, all)
	}
	for account, want := range map[string]string{
		"shop/web": "spiffe://td/ns/shop/sa/web", "spiffe://other/ns/a/sa/b": "spiffe://other/ns/a/sa/b",
		"web.example": "web.example", "/x": "/x", "a/": "a/",
	} {
		if got := SPIFFE("td", account); got != want {
			t.Errorf("the identity of %q is %q, want %q", account, got, want)
		}
	}
}
