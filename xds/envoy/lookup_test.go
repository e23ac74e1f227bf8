package envoy_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
)

// namedServices has services of each resolution that leads to names, and a gateway for them.
func namedServices(t *testing.T) *federation.Snapshot {
	t.Helper()
	dns, single := tcp(90, federation.TCP, "10.96.0.1/32"), tcp(91, federation.TCP, "10.96.0.2/32")
	dns.Endpoints, dns.Resolution = []federation.Endpoint{at("backend.example.org", 90)}, federation.DNSLB
	single.Endpoints, single.Resolution = []federation.Endpoint{at("backend.example.org", 91)}, federation.DNSRoundRobinLB
	both := dynamicEntry(80, federation.HTTP)
	both.Ports = append(both.Ports, federation.Port{Name: "tls", Number: 443, Protocol: federation.TLS})
	w := newFixture().attach("c1", "").resolveNames(t, both).say("c1", key("dns.shop"), dns).say("c1", key("single.shop"), single)
	return w.config(t, dynamicRoute).snapshot
}

// TestG125TheAddressesOfAProxyDecideAboutThoseOfNames, in every cluster and every listener that resolves names, so that
// Envoy takes them together: a cache of names has one configuration for each name.
func TestG125TheAddressesOfAProxyDecideAboutThoseOfNames(t *testing.T) {
	snapshot := namedServices(t)
	dualStack := func(is string) map[string]any {
		return map[string]any{"proxyMetadata": map[string]any{"ISTIO_DUAL_STACK": is}}
	}
	family, cache := regexp.MustCompile(`"dnsLookupFamily":\s*"(\w+)"`), regexp.MustCompile(`"name":\s*"(dynamic_dns_\w+)"`)
	caches := map[string]string{}
	for name, c := range map[string]struct {
		addresses, want string
		config          map[string]any
	}{
		"IPv4":                     {"10.0.0.9", "V4_PREFERRED", nil},
		"IPv4, written as IPv6":    {"::ffff:10.0.0.9", "V4_PREFERRED", nil},
		"IPv4 with dual stack":     {"10.0.0.9", "V4_PREFERRED", dualStack("true")},
		"IPv6":                     {"fd00::9,fd00::a", "V6_ONLY", nil},
		"IPv6 with dual stack":     {"fd00::9", "V6_ONLY", dualStack("true")},
		"both":                     {"10.0.0.9,fd00::9", "V4_PREFERRED", nil},
		"both with dual stack":     {"10.0.0.9,fd00::9", "ALL", dualStack("true")},
		"both with dual stack off": {"10.0.0.9,fd00::9", "V4_PREFERRED", dualStack("false")},
	} {
		for typ, places := range map[string]int{"sidecar": 4 + 3, "router": 4 + 1} { // in clusters and in listeners
			n := parse(t, typ+"~192.0.2.1~a.edge~edge.svc.cluster.local", map[string]any{
				"CLUSTER_ID": "c1", "INSTANCE_IPS": c.addresses, "PROXY_CONFIG": c.config, "HTTP_PROXY_PORT": 15080,
				"LABELS": map[string]any{"istio": "ingress"},
			})
			families, names, found := map[string]bool{}, map[string]bool{}, 0
			for _, r := range slices.Concat(build(t, envoy.ClusterType, n, snapshot), build(t, envoy.ListenerType, n, snapshot)) {
				text, err := protojson.Marshal(r.message)
				if err != nil {
					t.Fatal(err)
				}
				for _, match := range family.FindAllSubmatch(text, -1) {
					families[string(match[1])], found = true, found+1
				}
				for _, match := range cache.FindAllSubmatch(text, -1) {
					names[string(match[1])] = true
				}
			}
			if got := strings.Join(slices.Sorted(maps.Keys(families)), " "); got != c.want || found != places {
				t.Errorf("a %s with %s: %s at %d places, want %s at %d", typ, name, got, found, c.want, places)
			}
			got := strings.Join(slices.Sorted(maps.Keys(names)), " ")
			if known, is := caches[c.want]; len(names) != 1 || is && known != got {
				t.Errorf("a %s with %s has the caches %s, want one, and that of others with %s: %s", typ, name, got, c.want, known)
			}
			caches[c.want] = got
		}
	}
	if len(slices.Compact(slices.Sorted(maps.Values(caches)))) != 3 {
		t.Errorf("the caches are %v, want another name for each family", caches)
	}
}

// TestG125ProxiesShareTheirClusters unless they use other addresses of names.
func TestG125ProxiesShareTheirClusters(t *testing.T) {
	snapshot := namedServices(t)
	of := func(addresses string) []envoy.Facet {
		n := parse(t, "router~192.0.2.1~a.edge~edge.svc.cluster.local", map[string]any{"CLUSTER_ID": "c1", "INSTANCE_IPS": addresses})
		return slices.DeleteFunc(envoy.Facets(envoy.ClusterType, n, snapshot), func(f envoy.Facet) bool { return f.Scope.String() == "gateway" })
	}
	ipv4 := of("10.0.0.9")
	if both := of("10.0.0.9,fd00::9"); !slices.Equal(ipv4, both) {
		t.Errorf("proxies with both families have %v, want %v", both, ipv4)
	}
	if ipv6 := of("fd00::9"); slices.Equal(ipv4, ipv6) {
		t.Errorf("proxies with IPv6 alone have the same: %v", ipv6)
	}
}
