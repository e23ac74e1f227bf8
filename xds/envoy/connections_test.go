package envoy_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tcpproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// chainsOf tells where connections to a listener go: "BLOCK NAMES -> CLUSTER".
func chainsOf(t *testing.T, w *fixture, listener string) ([]string, []envoy.Reason) {
	t.Helper()
	l, reasons := find[*listenerv3.Listener](t, build(t, envoy.ListenerType, client(t), w.snapshot), listener)
	var all []string
	for _, chain := range append(slices.Clone(l.GetFilterChains()), l.GetDefaultFilterChain()) {
		if chain == nil {
			continue
		}
		var proxy tcpproxyv3.TcpProxy
		if err := chain.GetFilters()[0].GetTypedConfig().UnmarshalTo(&proxy); err != nil {
			t.Fatal(err)
		}
		match := slices.Clone(chain.GetFilterChainMatch().GetServerNames())
		for _, block := range chain.GetFilterChainMatch().GetPrefixRanges() {
			match = append([]string{fmt.Sprintf("%s/%d", block.GetAddressPrefix(), block.GetPrefixLen().GetValue())}, match...)
		}
		all = append(all, strings.Join(append(match, "-> "+proxy.GetCluster()), " "))
	}
	return all, reasons
}

func expectChains(t *testing.T, w *fixture, listener string, want ...string) []envoy.Reason {
	t.Helper()
	got, reasons := chainsOf(t, w, listener)
	if !slices.Equal(got, want) {
		t.Errorf("%s has the chains\n%s\nwant\n%s", listener, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	return reasons
}

// TestR20AWildcardRouteTakesTheHostsThatItCovers: TLS to a host that has a ServiceEntry
// of its own goes where the tls route for the wildcard leads, such as an egress gateway.
func TestR20AWildcardRouteTakesTheHostsThatItCovers(t *testing.T) {
	w := newFixture().attach("c1", "").
		say("c1", key("en.wiki.example"), external(443, federation.TLS, "192.0.2.1")).
		say("c1", key("other.example"), external(443, federation.TLS, "192.0.2.2")).
		say("c1", key("egress.shop"), tcp(8443, federation.TCP, "10.96.0.1/32")).
		config(t, `kind: VirtualService
metadata: {name: wiki, namespace: shop}
spec: {hosts: ["*.wiki.example"], tls: [{match: [{sniHosts: ["*.wiki.example"]}], route: [{destination: {host: egress.shop, port: {number: 8443}}}]}]}`)
	expectChains(t, w, "0.0.0.0_443", "*.wiki.example -> outbound|8443||egress.shop", "other.example -> outbound|443||other.example",
		"-> PassthroughCluster")
}

// TestR20RoutesAreForPortsOfTheirProtocol: tls routes hold for ports that speak TLS, tcp
// routes for those that do not.
func TestR20RoutesAreForPortsOfTheirProtocol(t *testing.T) {
	shard := tcp(443, federation.TLS, "10.96.0.1/32")
	shard.Ports = append(shard.Ports, federation.Port{Name: "mysql", Number: 3306, Protocol: federation.TCP})
	w := newFixture().attach("c1", "").say("c1", key("db.shop"), shard).
		say("c1", key("a.shop"), tcp(1, federation.TCP, "10.96.0.2/32")).say("c1", key("b.shop"), tcp(2, federation.TCP, "10.96.0.3/32")).
		config(t, `kind: VirtualService
metadata: {name: db, namespace: shop}
spec: {hosts: [db.shop], tls: [{match: [{sniHosts: [db.shop]}], route: [{destination: {host: a.shop}}]}], tcp: [{route: [{destination: {host: b.shop}}]}]}`)
	expectChains(t, w, "10.96.0.1_443", "db.shop -> outbound|1||a.shop", "-> outbound|443||db.shop")
	expectChains(t, w, "10.96.0.1_3306", "-> outbound|2||b.shop")
}

// TestR25AddressesOfAnEntryOfTheMeshAreCaptured: callers of an entry of the mesh with the
// resolution NONE dial its addresses; nothing is known of pods.
func TestR25AddressesOfAnEntryOfTheMeshAreCaptured(t *testing.T) {
	entry := tcp(5432, federation.TCP, "10.50.0.0/16", "10.60.0.1/32")
	entry.Resolution = federation.Passthrough
	w := newFixture().apply(federation.Edit{
		Source: federation.ShardKey{Cluster: "hub", Provider: federation.External},
		Clusters: federation.Delta[federation.ClusterID,
			federation.ClusterSpec]{Set: map[federation.ClusterID]federation.ClusterSpec{"hub": {Provider: federation.External}}},
		Services: federation.Delta[federation.ServiceKey,
			*federation.Shard]{Set: map[federation.ServiceKey]*federation.Shard{key("db.shop"): entry}},
	})
	expectChains(t, w, "10.60.0.1_5432", "-> outbound|5432||db.shop")
	expectChains(t, w, "0.0.0.0_5432", "10.50.0.0/16 -> outbound|5432||db.shop", "-> PassthroughCluster")
}

// TestR25RoutesForAPartOfABlock: of a CIDR block, only the addresses that a tcp route
// names take it.
func TestR25RoutesForAPartOfABlock(t *testing.T) {
	db, other := external(5432, federation.TCP, "192.0.2.1"), external(5432, federation.TCP, "192.0.2.2")
	db.VIPs, other.VIPs = vips("198.51.100.0/25"), vips("203.0.113.1/32")
	for _, subnet := range []string{"198.51.100.0/28", "198.51.100.64/28", "198.51.100.7/32"} {
		w := newFixture().attach("c1", "").say("c1", key("db.example"), db).say("c1", key("other.example"), other).config(t,
			fmt.Sprintf(`kind: VirtualService
metadata: {name: db, namespace: shop}
spec: {hosts: [db.example], tcp: [{match: [{destinationSubnets: [%q]}], route: [{destination: {host: other.example}}]}]}`, subnet))
		expectChains(t, w, "0.0.0.0_5432", "198.51.100.0/25 -> outbound|5432||db.example",
			netip.MustParsePrefix(subnet).String()+" -> outbound|5432||other.example", "-> PassthroughCluster")
	}
}

// TestR25TheSecondServiceOfABlockIsTold that connections to the block are another's.
func TestR25TheSecondServiceOfABlockIsTold(t *testing.T) {
	first, second := external(5432, federation.TCP, "192.0.2.1"), external(5432, federation.TCP, "192.0.2.2")
	first.VIPs, second.VIPs = vips("198.51.100.0/25"), vips("198.51.100.0/25")
	w := newFixture().attach("c1", "").say("c1", key("a.example"), first).say("c1", key("b.example"), second)
	reasons := expectChains(t, w, "0.0.0.0_5432", "198.51.100.0/25 -> outbound|5432||a.example", "-> PassthroughCluster")
	if len(reasons) != 1 || reasons[0].Code != resource.ReasonVIPTaken || reasons[0].Service != key("b.example") {
		t.Errorf("the reasons are %v", reasons)
	}
}

// TestR25AnEntryWithoutResolutionIsAnsweredWithItsAddresses: DNS capture answers with the
// addresses that a ServiceEntry names, whatever its resolution.
func TestR25AnEntryWithoutResolutionIsAnsweredWithItsAddresses(t *testing.T) {
	shards := map[federation.ServiceKey]*federation.Shard{}
	for i, host := range []federation.Hostname{"in.example", "out.example", "block.example"} {
		shard := tcp(5432, federation.TCP, []string{"198.51.100.1/32", "198.51.100.2/32", "198.51.100.0/24"}[i])
		shard.Resolution, shard.MeshExternal = federation.Passthrough, i > 0
		shards[key(host)] = shard
	}
	w := newFixture().attach("c1", "").apply(federation.Edit{
		Source: federation.ShardKey{Cluster: "hub", Provider: federation.External},
		Clusters: federation.Delta[federation.ClusterID,
			federation.ClusterSpec]{Set: map[federation.ClusterID]federation.ClusterSpec{"hub": {Provider: federation.External}}},
		Services: federation.Delta[federation.ServiceKey, *federation.Shard]{Set: shards},
	})
	if got := answered(t, w, "c1"); got != "in.example 198.51.100.1, out.example 198.51.100.2" {
		t.Errorf("it answers %s", got)
	}
}

// TestK53SourceSubnetsHaveNoEffect: the route applies to connections from everywhere.
func TestK53SourceSubnetsHaveNoEffect(t *testing.T) {
	for _, match := range []string{"{}", "{sourceSubnet: 192.0.2.0/24}", "{sourceSubnet: 10.0.0.9}"} {
		w := newFixture().attach("c1", "").say("c1", key("db.shop"), tcp(3306, federation.TCP, "10.96.0.1/32")).
			say("c1", key("copy.shop"), tcp(3306, federation.TCP, "10.96.0.2/32")).
			config(t, fmt.Sprintf(`kind: VirtualService
metadata: {name: db, namespace: shop}
spec: {hosts: [db.shop], tcp: [{match: [%s], route: [{destination: {host: copy.shop}}]}]}`, match))
		expectChains(t, w, "10.96.0.1_3306", "-> outbound|3306||copy.shop")
	}
}
