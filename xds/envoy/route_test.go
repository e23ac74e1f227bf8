package envoy_test

import (
	"maps"
	"net/http"
	"slices"
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// domainsOf returns the domains of each virtual host by its name.
func domainsOf(t *testing.T, s *federation.Snapshot, n envoy.Node, name string) map[string][]string {
	t.Helper()
	c, _ := find[*routev3.RouteConfiguration](t, build(t, envoy.RouteType, n, s), name)
	domains := map[string][]string{}
	for _, host := range c.GetVirtualHosts() {
		domains[host.GetName()] = host.GetDomains()
	}
	return domains
}

func httpOn(port uint16, addresses ...string) *federation.Shard {
	return tcp(port, federation.HTTP, addresses...)
}

func TestAllUsualNamesOfAHost(t *testing.T) {
	w := newFixture().attach("c1", "").attach("c2", "").
		say("c1", webKey, httpOn(80, "10.1.0.1/32", "fd00::1/128")).
		say("c2", webKey, httpOn(80, "10.2.0.1/32")).
		say("c2", federation.ServiceKey{Hostname: "far.other.svc.cluster.local", Namespace: "other"}, httpOn(80, "10.2.0.2/32")).
		say("c2", federation.ServiceKey{Hostname: "x.other.svc.second.domain", Namespace: "other"}, httpOn(80)).
		say("c2", federation.ServiceKey{Hostname: "*.example.com"}, httpOn(80))
	got := domainsOf(t, w.snapshot, client(t), "80")
	for host, want := range map[string][]string{
		"web.shop.svc.cluster.local:80":  {"web.shop.svc.cluster.local", "10.1.0.1", "[fd00::1]", "web", "web.shop.svc", "web.shop"},
		"far.other.svc.cluster.local:80": {"far.other.svc.cluster.local", "far.other.svc", "far.other", "10.2.0.2"},
		"x.other.svc.second.domain:80":   {"x.other.svc.second.domain"},
		"*.example.com:80":               {"*.example.com"},
		"allow_any":                      {"*"},
	} {
		if !slices.Equal(got[host], want) {
			t.Errorf("%s is known as %q, want %q", host, got[host], want)
		}
	}
}

// TestG120RoutesThatNoObjectMakesHaveIstiosNames: access logs and EnvoyFilters of Istio know routes by them.
func TestG120RoutesThatNoObjectMakesHaveIstiosNames(t *testing.T) {
	w := newFixture().attach("c1", "").say("c1", webKey, httpOn(80))
	proxy := parse(t, "sidecar~10.0.0.9~client~", map[string]any{"CLUSTER_ID": "c1", "HTTP_PROXY_PORT": 15080})
	names := map[string]string{}
	for _, of := range []string{"80", "http_proxy"} {
		c, _ := find[*routev3.RouteConfiguration](t, build(t, envoy.RouteType, proxy, w.snapshot), of)
		for _, host := range c.GetVirtualHosts() {
			for _, route := range host.GetRoutes() {
				names[host.GetName()] += route.GetName()
			}
		}
	}
	want := map[string]string{
		"web.shop.svc.cluster.local:80": "defaultdefault", "allow_any": "allow_any", "block_all": "block_all", // the service of both
	}
	if !maps.Equal(names, want) {
		t.Errorf("the routes are named %q, want %q", names, want)
	}
}

func TestANameLeadsToOneService(t *testing.T) {
	w := newFixture().attach("c1", "").attach("c2", "").
		say("c1", key("web.shop.svc.cluster.local"), httpOn(80, "10.1.0.1/32")).
		say("c1", key("web.shop"), httpOn(80, "10.1.0.2/32")).
		say("c2", key("a.shop"), httpOn(80, "10.1.0.1/32"))
	got := domainsOf(t, w.snapshot, client(t), "80")
	for host, want := range map[string][]string{
		"web.shop.svc.cluster.local:80": {"web.shop.svc.cluster.local", "10.1.0.1", "web", "web.shop.svc"},
		"web.shop:80":                   {"web.shop", "10.1.0.2"},
		"a.shop:80":                     {"a.shop"},
	} {
		if !slices.Equal(got[host], want) {
			t.Errorf("%s is known as %q, want %q", host, got[host], want)
		}
	}
	_, reasons := find[*routev3.RouteConfiguration](t, build(t, envoy.RouteType, client(t), w.snapshot), "80")
	if len(reasons) != 2 || reasons[0].Code != resource.ReasonDomainTaken {
		t.Errorf("reasons are %v, want two taken names", reasons)
	}
}

func TestProxyRoutesTellPortsApart(t *testing.T) {
	n := parse(t, "sidecar~10.0.0.9~client~", map[string]any{"CLUSTER_ID": "c1", "HTTP_PROXY_PORT": 15080})
	w := newFixture().attach("c1", "").
		say("c1", key("web.example"), httpOn(80)).
		say("c1", key("api.example"), httpOn(8080, "10.1.0.1/32"))
	got := domainsOf(t, w.snapshot, n, "http_proxy")
	for host, want := range map[string][]string{
		"web.example:80":   {"web.example", "web.example:80"},
		"api.example:8080": {"api.example:8080", "10.1.0.1:8080"},
	} {
		if !slices.Equal(got[host], want) {
			t.Errorf("%s is known as %q, want %q", host, got[host], want)
		}
	}
	c, _ := find[*routev3.RouteConfiguration](t, build(t, envoy.RouteType, n, w.snapshot), "http_proxy")
	last := c.GetVirtualHosts()[len(c.GetVirtualHosts())-1]
	if status := last.GetRoutes()[0].GetDirectResponse().GetStatus(); last.GetName() != "block_all" || status != http.StatusBadGateway {
		t.Errorf("unknown hosts are answered by %s with %d, want 502", last.GetName(), status)
	}
}

func TestSeed07RestrictedServicesAreSeenOnlyFromTheirNamespaces(t *testing.T) {
	private := httpOn(80)
	private.ExportTo = []string{"."}
	w := newFixture().attach("c1", "").say("c1", webKey, private)
	outsider := parse(t, "sidecar~10.0.0.9~client.other~other.svc.cluster.local", map[string]any{"CLUSTER_ID": "c1"})
	for _, typ := range []envoy.Type{envoy.ClusterType, envoy.EndpointType, envoy.ListenerType, envoy.RouteType} {
		seen := func(n envoy.Node) int {
			return len(build(t, typ, n, w.snapshot)) - len(build(t, typ, n, federation.Empty()))
		}
		if inside, outside := seen(client(t)), seen(outsider); inside != 1 || outside != 0 {
			t.Errorf("%s: the namespace itself sees %d resources of the service, another %d", typ, inside, outside)
		}
	}
}

func TestOfOneHostnameTheServiceThatEveryoneSeesComesFirst(t *testing.T) {
	private := httpOn(80)
	private.ExportTo = []string{"."}
	w := newFixture().attach("c1", "").
		say("c1", federation.ServiceKey{Hostname: "web.example", Namespace: "shop"}, private).
		say("c1", federation.ServiceKey{Hostname: "web.example", Namespace: "z"}, web(at("10.0.0.1", 8080)))
	for _, typ := range allTypes {
		build(t, typ, client(t), w.snapshot) // fails where a name exists twice
	}
	if a := build(t, envoy.EndpointType, client(t), w.snapshot); len(a) != 1 {
		t.Errorf("assignments are %q, want one", namesOf(a))
	}
	_, reasons := find[*routev3.RouteConfiguration](t, build(t, envoy.RouteType, client(t), w.snapshot), "80")
	if len(reasons) != 1 || reasons[0].Code != resource.ReasonHostnameTaken {
		t.Errorf("reasons are %v, want the taken hostname", reasons)
	}
}

func TestRequestsAreTriedAgainWhereThatIsSafe(t *testing.T) {
	w := newFixture().attach("c1", "").say("c1", webKey, web(at("10.0.0.1", 8080)))
	c, _ := find[*routev3.RouteConfiguration](t, build(t, envoy.RouteType, client(t), w.snapshot), "80")
	action := c.GetVirtualHosts()[0].GetRoutes()[0].GetRoute()
	if action.GetRetryPolicy().GetNumRetries().GetValue() != 2 || action.GetTimeout() == nil || action.GetTimeout().AsDuration() != 0 {
		t.Errorf("the route is %v; want 2 retries and no time limit", action)
	}
}

// directStatus is the status of the direct response of port 80's first host.
func directStatus(t *testing.T, s *federation.Snapshot) uint32 {
	t.Helper()
	c, _ := find[*routev3.RouteConfiguration](t, build(t, envoy.RouteType, client(t), s), "80")
	return c.GetVirtualHosts()[0].GetRoutes()[0].GetDirectResponse().GetStatus()
}
