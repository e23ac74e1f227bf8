package envoy_test

import (
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
)

// externalName is a Service of type ExternalName for the target.
func externalName(target federation.Hostname, ports ...federation.Port) *federation.Shard {
	e := federation.Endpoint{Address: federation.HostAddress(string(target))}
	for _, p := range ports {
		e.Ports = append(e.Ports, federation.EndpointPort{Name: p.Name, Number: p.Number})
	}
	return &federation.Shard{
		Ports: ports, Resolution: federation.DNSLB, MeshExternal: true, ExternalName: target, Endpoints: []federation.Endpoint{e},
	}
}

var port80 = federation.Port{Name: "http", Number: 80, Protocol: federation.HTTP}

// routesTo is the cluster to which the virtual host with the domain leads.
func routesTo(t *testing.T, w *fixture, n envoy.Node, domain string) string {
	t.Helper()
	c, _ := find[*routev3.RouteConfiguration](t, build(t, envoy.RouteType, n, w.snapshot), "80")
	for _, host := range c.GetVirtualHosts() {
		if slices.Contains(host.GetDomains(), domain) {
			return host.GetRoutes()[0].GetRoute().GetCluster()
		}
	}
	return ""
}

// TestR82AnExternalNameIsAnotherNameOfAService: with and without ports, over others,
// and for destinations of VirtualServices. It has no cluster of its own.
func TestR82AnExternalNameIsAnotherNameOfAService(t *testing.T) {
	w := newFixture().attach("c1", "").say("c1", webKey, httpOn(80, "10.1.0.1/32")).
		say("c1", key("alias.shop.svc.cluster.local"), externalName(webKey.Hostname, port80)).
		say("c1", key("noport.shop.svc.cluster.local"), externalName(webKey.Hostname)).
		say("c1", key("chain.shop.svc.cluster.local"), externalName("noport.shop.svc.cluster.local")).
		config(t,
			"kind: VirtualService\nmetadata: {name: v, namespace: shop}\nspec: {hosts: [old.example.com], http: [{route: [{destination: {host: alias.shop.svc.cluster.local}}]}]}")
	for _, domain := range []string{
		"alias.shop.svc.cluster.local", "alias.shop", "alias", "noport.shop.svc.cluster.local", "noport", "chain.shop.svc.cluster.local",
		"chain", "old.example.com",
	} {
		if got := routesTo(t, w, client(t), domain); got != webCluster {
			t.Errorf("requests to %s go to %q", domain, got)
		}
	}
	for _, r := range build(t, envoy.ClusterType, client(t), w.snapshot) {
		if strings.Contains(r.name, "alias") || strings.Contains(r.name, "noport") {
			t.Errorf("there is a cluster %s", r.name)
		}
	}
	if got := answered(t, w, "c1"); strings.Count(got, " 10.1.0.1") != 4 {
		t.Errorf("DNS answers %s", got)
	}
}

// TestR82AnExternalNameFollowsItsTarget: it is a host of its own as long as there is
// no such service, and one that the proxy does not see counts as none.
func TestR82AnExternalNameFollowsItsTarget(t *testing.T) {
	const own = "outbound|80||alias.shop.svc.cluster.local"
	alias := key("alias.shop.svc.cluster.local")
	w := newFixture().attach("c1", "").say("c1", alias, externalName(webKey.Hostname, port80))
	if got := routesTo(t, w, client(t), "alias"); got != own {
		t.Errorf("without the target, requests go to %q", got)
	}
	w.say("c1", webKey, httpOn(80))
	if got := routesTo(t, w, client(t), "alias"); got != webCluster {
		t.Errorf("with the target, requests go to %q", got)
	}
	hidden := httpOn(80)
	hidden.ExportTo = []string{"other"}
	w.say("c1", webKey, hidden)
	if got := routesTo(t, w, client(t), "alias"); got != own {
		t.Errorf("with a target that is not seen, requests go to %q", got)
	}
	find[*clusterv3.Cluster](t, build(t, envoy.ClusterType, client(t), w.snapshot), own)
}

// TestR82LoopsOfExternalNamesEnd: they resolve to nothing, and all else is built.
func TestR82LoopsOfExternalNamesEnd(t *testing.T) {
	w := newFixture().attach("c1", "").say("c1", webKey, httpOn(80)).
		say("c1", key("a.shop.svc.cluster.local"), externalName("b.shop.svc.cluster.local", port80)).
		say("c1", key("b.shop.svc.cluster.local"), externalName("a.shop.svc.cluster.local", port80)).
		say("c1", key("self.shop.svc.cluster.local"), externalName("self.shop.svc.cluster.local", port80))
	for _, name := range []string{"a", "b", "self"} {
		if got, want := routesTo(t, w, client(t), name), "outbound|80||"+name+".shop.svc.cluster.local"; got != want {
			t.Errorf("requests to %s go to %q", name, got)
		}
	}
}

// TestR82ALongChainOfExternalNamesEnds: of 8 steps the last name leads to the
// service, of 9 it does not.
func TestR82ALongChainOfExternalNamesEnds(t *testing.T) {
	w := newFixture().attach("c1", "").say("c1", webKey, httpOn(80))
	before := webKey.Hostname
	for _, n := range "123456789" {
		name := federation.Hostname("n" + string(n) + ".shop.svc.cluster.local")
		w.say("c1", key(name), externalName(before, port80))
		before = name
	}
	if got := routesTo(t, w, client(t), "n8"); got != webCluster {
		t.Errorf("after 8 steps requests go to %q", got)
	}
	if got, own := routesTo(t, w, client(t), "n9"), "outbound|80||n9.shop.svc.cluster.local"; got != own {
		t.Errorf("after 9 steps requests go to %q", got)
	}
}

// TestR82AVirtualServiceForAnAliasIsItsOwnHost: its routes hold for that name alone,
// and what they leave goes to the service.
func TestR82AVirtualServiceForAnAliasIsItsOwnHost(t *testing.T) {
	w := newFixture().attach("c1", "").say("c1", webKey, httpOn(80)).say("c1", key("api.shop.svc.cluster.local"), httpOn(80)).
		say("c1", key("alias.shop.svc.cluster.local"), externalName(webKey.Hostname)).
		config(t,
			"kind: VirtualService\nmetadata: {name: v, namespace: shop}\nspec: {hosts: [alias.shop.svc.cluster.local], http: [{route: [{destination: {host: api.shop.svc.cluster.local}}]}]}")
	if got := routesTo(t, w, client(t), "alias"); got != "outbound|80||api.shop.svc.cluster.local" {
		t.Errorf("requests to the alias go to %q", got)
	}
	if got := routesTo(t, w, client(t), "web"); got != webCluster {
		t.Errorf("requests to the service go to %q", got)
	}
}

// TestR82ANameIsOneHost: of a name that has a VirtualService and is another name of one
// service and the hostname of another, or another name of two.
func TestR82ANameIsOneHost(t *testing.T) {
	const alias, shared = "zeta.shop.svc.cluster.local", "shared.example"
	named := httpOn(80)
	named.Aliases = []federation.Hostname{shared}
	w := newFixture().attach("c1", "").say("c1", webKey, named).say("c1", key("api.shop.svc.cluster.local"), named).
		say("c1", key(alias), externalName(webKey.Hostname)). // has no port
		say("c1", federation.ServiceKey{Hostname: alias, Namespace: "other"}, httpOn(80, "10.1.0.7/32")).
		config(t, "kind: VirtualService\nmetadata: {name: v, namespace: shop}\nspec: {hosts: ["+alias+", "+shared+"], http: [{timeout: 3s}]}")
	for domain, want := range map[string]string{
		alias: "outbound|80||" + alias, shared: "outbound|80||api.shop.svc.cluster.local", "web": webCluster,
		"api": "outbound|80||api.shop.svc.cluster.local",
	} {
		if got := routesTo(t, w, client(t), domain); got != want {
			t.Errorf("requests to %s go to %q, want %s", domain, got, want)
		}
	}
}

// TestR82NobodyLosesTheTargetOfAName: a service that only some proxies see, and that
// leads nowhere, does not make a name something else for these proxies.
func TestR82NobodyLosesTheTargetOfAName(t *testing.T) {
	const front, middle = "front.zoo.svc.cluster.local", "middle.zoo.svc.cluster.local"
	private := externalName(middle) // leads back
	private.ExportTo = []string{"."}
	to := externalName(middle)
	to.Ports = httpOn(80).Ports
	w := newFixture().attach("c1", "").say("c1", webKey, httpOn(80)).
		say("c1", federation.ServiceKey{Hostname: front, Namespace: "zoo"}, to).
		say("c1", federation.ServiceKey{Hostname: middle, Namespace: "zoo"}, externalName(webKey.Hostname)).
		say("c1", federation.ServiceKey{Hostname: middle, Namespace: "shop"}, private)
	checkReferences(t, client(t), buildAll(t, client(t), w.snapshot))
	if got := routesTo(t, w, client(t), front); got != webCluster {
		t.Errorf("requests to %s go to %q, want %s", front, got, webCluster)
	}
}

// TestK40AnUndeclaredPortOfAnExternalName whose target only some namespaces see: proxies of all
// namespaces share the listener of the name, and its routes exist for each of them.
func TestK40AnUndeclaredPortOfAnExternalName(t *testing.T) {
	undeclared := federation.Port{Name: "any", Number: 80, Protocol: federation.TCP, Undeclared: true}
	alias := externalName(webKey.Hostname, undeclared)
	alias.VIPs = vips("10.1.0.9/32")
	for port, want := range map[uint16]string{80: webCluster, 8080: ""} {
		hidden := httpOn(port)
		hidden.ExportTo = []string{"shop"}
		w := newFixture().attach("c1", "").say("c1", webKey, hidden).say("c1", key("alias.shop.svc.cluster.local"), alias)
		built := buildAll(t, client(t), w.snapshot)
		checkReferences(t, client(t), built)
		routes, _ := find[*routev3.RouteConfiguration](t, built[envoy.RouteType], "alias.shop.svc.cluster.local:80")
		if got := routes.GetVirtualHosts()[0].GetRoutes()[0].GetRoute().GetCluster(); got != want {
			t.Errorf("requests to a name of a service with port %d go to %q, want %q", port, got, want)
		}
	}
}
