package envoy_test

import (
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// entries adds services that ServiceEntries alone declare, the first of them the oldest.
func (w *fixture) entries(hosts []federation.Hostname, shards ...*federation.Shard) *fixture {
	set := map[federation.ServiceKey]*federation.Shard{}
	for i, s := range shards {
		s.Created = time.Date(2026, 1, 1+i, 0, 0, 0, 0, time.UTC)
		set[key(hosts[i])] = s
	}
	return w.apply(federation.Edit{
		Source: federation.ShardKey{Cluster: "hub", Provider: federation.External},
		Clusters: federation.Delta[federation.ClusterID,
			federation.ClusterSpec]{Set: map[federation.ClusterID]federation.ClusterSpec{"hub": {Provider: federation.External}}},
		Services: federation.Delta[federation.ServiceKey, *federation.Shard]{Set: set},
	})
}

// TestK65AnEntryWithoutAddressesHasItsPort: connections to any address at the port are those of the oldest entry that
// nobody gave an address, and the others are told. An automatic VIP is none of the addresses that callers know.
func TestK65AnEntryWithoutAddressesHasItsPort(t *testing.T) {
	old, young := external(5432, federation.TCP, "192.0.2.1"), external(5432, federation.TCP, "192.0.2.2")
	young.VIPs = vips("240.240.1.5/32")
	w := newFixture().attach("c1", "").entries([]federation.Hostname{"z.example", "a.example"}, old, young)
	reasons := expectChains(t, w, "0.0.0.0_5432", "-> outbound|5432||z.example")
	if len(reasons) != 1 || reasons[0].Code != resource.ReasonVIPTaken || reasons[0].Service != key("a.example") {
		t.Errorf("the reasons are %v", reasons)
	}
}

// TestK65ServicesThatAreKnownByMoreThanTheirPort do not have the connections to any address.
func TestK65ServicesThatAreKnownByMoreThanTheirPort(t *testing.T) {
	given, automatic, tls := external(5432, federation.TCP), external(5432, federation.TCP), external(5432, federation.TLS)
	given.VIPs, automatic.VIPs = vips("198.51.100.1/32"), vips("240.240.1.5/32")
	of := func(s *federation.Shard) *fixture {
		return newFixture().attach("c1", "").entries([]federation.Hostname{"db.example"}, s)
	}
	for name, c := range map[string]struct {
		w       *fixture
		capture bool
		want    string
	}{
		"addresses":              {of(given), false, "198.51.100.1_5432"},
		"an automatic VIP":       {of(automatic), true, "240.240.1.5_5432"},
		"one that nobody learns": {of(automatic), false, "0.0.0.0_5432"},
		"no VIP, of a cluster":   {newFixture().attach("c1", "").say("c1", key("db.example"), external(5432, federation.TCP)), false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			n := parse(t, "sidecar~10.7.0.9~a.shop~shop.svc.cluster.local", map[string]any{"CLUSTER_ID": "c1", "DNS_CAPTURE": c.capture})
			got := ""
			for _, l := range build(t, envoy.ListenerType, n, c.w.snapshot) {
				if strings.HasSuffix(l.name, "_5432") {
					got += l.name
				}
			}
			if got != c.want {
				t.Errorf("connections to the port are caught at %q, want %q", got, c.want)
			}
		})
	}
	expectChains(t, of(tls), "0.0.0.0_5432", "db.example -> outbound|5432||db.example", "-> PassthroughCluster")
}
