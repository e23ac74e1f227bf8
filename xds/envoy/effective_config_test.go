package envoy_test

import (
	"slices"
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
)

// twoShops has one service in each of three namespaces, one of them private.
func twoShops() *fixture {
	private := web(at("10.0.0.3", 8080))
	private.ExportTo = []string{"."}
	return newFixture().attach("c1", "").say("c1", webKey, web(at("10.0.0.1", 8080))).
		say("c1", federation.ServiceKey{Hostname: "pay.bank.svc.cluster.local", Namespace: "bank"}, web(at("10.0.0.2", 8080))).
		say("c1", federation.ServiceKey{Hostname: "vault.bank.svc.cluster.local", Namespace: "bank"}, private)
}

func outboundClusters(t *testing.T, n envoy.Node, s *federation.Snapshot) string {
	t.Helper()
	var hosts []string
	for _, name := range namesOf(build(t, envoy.ClusterType, n, s)) {
		if host, is := strings.CutPrefix(name, "outbound|80||"); is {
			hosts = append(hosts, strings.TrimSuffix(host, ".svc.cluster.local"))
		}
	}
	return strings.Join(hosts, " ")
}

func TestSidecarDecidesWhatIsImported(t *testing.T) {
	shop := parse(t, "sidecar~10.0.0.9~a.shop~shop.svc.cluster.local",
		map[string]any{"CLUSTER_ID": "c1", "LABELS": map[string]any{"app": "a"}})
	bank := parse(t, "sidecar~10.0.0.9~b.bank~bank.svc.cluster.local", map[string]any{"CLUSTER_ID": "c1"})
	sidecar := func(namespace, selector, hosts string) string {
		return "kind: Sidecar\nmetadata: {name: s" + selector + ", namespace: " + namespace + "}\nspec:\n" +
			map[bool]string{true: "  workloadSelector: {labels: {app: " + selector + "}}\n"}[selector != ""] +
			"  egress: [{hosts: [" + hosts + "]}]"
	}
	for name, c := range map[string]struct{ config, shop, bank string }{
		"none":                   {"", "pay.bank web.shop", "pay.bank vault.bank web.shop"},
		"own namespace":          {sidecar("shop", "", `"./*"`), "web.shop", "pay.bank vault.bank web.shop"},
		"everything":             {sidecar("shop", "", `"*/*"`), "pay.bank web.shop", "pay.bank vault.bank web.shop"},
		"one host":               {sidecar("bank", "", `"*/pay.bank.svc.cluster.local"`), "pay.bank web.shop", "pay.bank"},
		"wildcard":               {sidecar("bank", "", `"*/*.bank.svc.cluster.local"`), "pay.bank web.shop", "pay.bank vault.bank"},
		"nothing":                {sidecar("shop", "", `"~/*"`), "", "pay.bank vault.bank web.shop"},
		"private stays (seed 7)": {sidecar("shop", "", `"bank/*"`), "pay.bank", "pay.bank vault.bank web.shop"},
		"selected before general": {
			sidecar("shop", "", `"~/*"`) + "\n---\n" + sidecar("shop", "a", `"./*"`), "web.shop",
			"pay.bank vault.bank web.shop",
		},
		"selects another": {sidecar("shop", "b", `"~/*"`), "pay.bank web.shop", "pay.bank vault.bank web.shop"},
		"root":            {sidecar("istio-system", "", `"./*"`), "web.shop", "pay.bank vault.bank"},
		"own before root": {sidecar("istio-system", "", `"~/*"`) + "\n---\n" + sidecar("shop", "", `"./*"`), "web.shop", ""},
		"another root of the mesh": {
			"kind: MeshSettings\nspec: {rootNamespace: root}\n---\n" + sidecar("istio-system", "", `"~/*"`),
			"pay.bank web.shop", "pay.bank vault.bank web.shop",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := twoShops()
			if c.config != "" {
				w.config(t, c.config)
			}
			if got := outboundClusters(t, shop, w.snapshot); got != c.shop {
				t.Errorf("shop imports %q, want %q", got, c.shop)
			}
			if got := outboundClusters(t, bank, w.snapshot); got != c.bank {
				t.Errorf("bank imports %q, want %q", got, c.bank)
			}
			checkReferences(t, shop, buildAll(t, shop, w.snapshot))
		})
	}
}

// TestG100SidecarsImportDestinationsOfRoutes: a Sidecar has the clusters of the services to which VirtualServices lead that it
// imports, and no others.
func TestG100SidecarsImportDestinationsOfRoutes(t *testing.T) {
	shop := parse(t, "sidecar~10.0.0.9~a.shop~shop.svc.cluster.local", map[string]any{"CLUSTER_ID": "c1"})
	rule := func(namespace, name, spec string) string {
		return "\n---\nkind: VirtualService\nmetadata: {name: " + name + ", namespace: " + namespace + "}\nspec: {" + spec + "}"
	}
	leads := func(host string) string {
		return "http: [{route: [{destination: {host: " + host + ".svc.cluster.local}}]}]"
	}
	const web, toPay = `"*/web.shop.svc.cluster.local"`, "http: [{route: [{destination: {host: pay.bank.svc.cluster.local}}]}]"
	for name, c := range map[string]struct{ egress, rules, want string }{
		"none":                  {web, "", "web.shop"},
		"a host":                {web, rule("shop", "web", "hosts: [web.shop.svc.cluster.local], "+toPay), "pay.bank web.shop"},
		"a wildcard of a rule":  {web, rule("shop", "web", `hosts: ["*.shop.svc.cluster.local"], `+toPay), "pay.bank web.shop"},
		"a namespace":           {`"./*"`, rule("shop", "web", "hosts: [web.shop.svc.cluster.local], "+toPay), "pay.bank web.shop"},
		"hosts of a namespace":  {`"./*.svc.cluster.local"`, rule("shop", "web", "hosts: [web.shop.svc.cluster.local], "+toPay), "pay.bank web.shop"},
		"hosts everywhere":      {`"*/*.shop.svc.cluster.local"`, rule("shop", "web", "hosts: [web.shop.svc.cluster.local], "+toPay), "pay.bank web.shop"},
		"connections":           {web, rule("shop", "web", "hosts: [web.shop.svc.cluster.local], tcp: [{route: [{destination: {host: pay.bank.svc.cluster.local}}]}]"), "pay.bank web.shop"},
		"another host":          {web, rule("shop", "web", "hosts: [other.shop.svc.cluster.local], "+toPay), "web.shop"},
		"another namespace":     {`"./*"`, rule("bank", "web", "hosts: [web.shop.svc.cluster.local], "+toPay), "web.shop"},
		"gateways":              {web, rule("shop", "web", "hosts: [web.shop.svc.cluster.local], gateways: [edge], "+toPay), "web.shop"},
		"not exported":          {web, rule("bank", "web", `hosts: [web.shop.svc.cluster.local], exportTo: ["."], `+toPay), "web.shop"},
		"a private destination": {web, rule("shop", "web", "hosts: [web.shop.svc.cluster.local], "+leads("vault.bank")), "web.shop"},
		"an excluded one":       {web + `, "~bank/*"`, rule("shop", "web", "hosts: [web.shop.svc.cluster.local], "+toPay), "web.shop"},
		"a delegate": {
			web, rule("shop", "web", "hosts: [web.shop.svc.cluster.local], http: [{delegate: {name: pay, namespace: bank}}]") + rule("bank", "pay", toPay),
			"pay.bank web.shop",
		},
		"nothing is imported": {`"~/*"`, rule("shop", "web", "hosts: [web.shop.svc.cluster.local], "+toPay), ""},
		"destinations of destinations": {
			`"*/pay.bank.svc.cluster.local"`,
			rule("shop", "web", "hosts: [web.shop.svc.cluster.local], "+toPay) + rule("bank", "pay", "hosts: [pay.bank.svc.cluster.local], "+leads("nowhere.bank")), "pay.bank",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := twoShops().config(t, "kind: Sidecar\nmetadata: {name: s, namespace: shop}\nspec: {egress: [{hosts: ["+c.egress+"]}]}"+c.rules)
			if got := outboundClusters(t, shop, w.snapshot); got != c.want {
				t.Errorf("shop imports %q, want %q", got, c.want)
			}
			checkReferences(t, shop, buildAll(t, shop, w.snapshot))
		})
	}
}

// TestR27HostsThatASidecarExcludesAreNotImported: a namespace after ~ excludes hosts, ~ alone
// excludes them in every namespace; another listener may import them.
func TestR27HostsThatASidecarExcludesAreNotImported(t *testing.T) {
	shop := parse(t, "sidecar~10.0.0.9~a.shop~shop.svc.cluster.local", map[string]any{"CLUSTER_ID": "c1"})
	for egress, want := range map[string]string{
		`{hosts: ["*/*", "~bank/*"]}`:                                                               "web.shop",
		`{hosts: ["*/*", "~bank/pay.bank.svc.cluster.local"]}`:                                      "web.shop",
		`{hosts: ["~/pay.bank.svc.cluster.local", "*/*"]}`:                                          "web.shop",
		`{hosts: ["*/*", "~./*"]}`:                                                                  "pay.bank",
		`{hosts: ["*/*", "~shop/*.bank.svc.cluster.local"]}`:                                        "pay.bank web.shop",
		`{hosts: ["~bank/*"]}`:                                                                      "",
		`{hosts: ["*/*", "~/*"]}`:                                                                   "",
		`{port: {number: 80, protocol: HTTP}, hosts: ["*/*", "~bank/*"]}, {hosts: ["bank/*"]}`:      "pay.bank web.shop",
		`{port: {number: 80, protocol: HTTP}, hosts: ["*/*", "~bank/*"]}, {hosts: ["*/*", "~./*"]}`: "pay.bank web.shop",
	} {
		w := twoShops().config(t, "kind: Sidecar\nmetadata: {name: s, namespace: shop}\nspec: {egress: ["+egress+"]}")
		if got := outboundClusters(t, shop, w.snapshot); got != want {
			t.Errorf("%s imports %q, want %q", egress, got, want)
		}
	}
}

// TestSeed07PrivateObjectIsNotImported: importing a namespace never imports what
// is private to it.
func TestSeed07PrivateObjectIsNotImported(t *testing.T) {
	w := twoShops().config(t, "kind: Sidecar\nmetadata: {name: s, namespace: shop}\nspec: {egress: [{hosts: [\"bank/*\"]}]}")
	shop := parse(t, "sidecar~10.0.0.9~a.shop~shop.svc.cluster.local", map[string]any{"CLUSTER_ID": "c1"})
	bank := parse(t, "sidecar~10.0.0.9~b.bank~bank.svc.cluster.local", map[string]any{"CLUSTER_ID": "c1"})
	if got := outboundClusters(t, shop, w.snapshot); strings.Contains(got, "vault") {
		t.Errorf("a sidecar in shop sees what is private to bank: %q", got)
	}
	if got := outboundClusters(t, bank, w.snapshot); !strings.Contains(got, "vault") {
		t.Errorf("a sidecar in bank does not see what is its own: %q", got)
	}
}

// Labels split facets only where some object looks at them.
func TestLabelsMatterOnlyWhereAnObjectLooksAtThem(t *testing.T) {
	a := parse(t, "sidecar~10.0.0.8~a.shop~shop.svc.cluster.local",
		map[string]any{"CLUSTER_ID": "c1", "LABELS": map[string]any{"app": "a", "pod": "1"}})
	b := parse(t, "sidecar~10.0.0.9~b.shop~shop.svc.cluster.local",
		map[string]any{"CLUSTER_ID": "c1", "LABELS": map[string]any{"app": "b", "pod": "2"}})
	same := func(s *federation.Snapshot) bool {
		return slices.Equal(envoy.Facets(envoy.RouteType, a, s), envoy.Facets(envoy.RouteType, b, s))
	}
	w := twoShops()
	if !same(w.snapshot) {
		t.Error("labels split facets though no object looks at them")
	}
	w.config(t, `kind: VirtualService
metadata: {name: v, namespace: shop}
spec:
  hosts: [web.shop.svc.cluster.local]
  http: [{match: [{sourceLabels: {app: a}}], route: [{destination: {host: web.shop.svc.cluster.local}}]}]`)
	if same(w.snapshot) {
		t.Error("an object looks at app, and two apps share their routes")
	}
	for _, f := range envoy.Facets(envoy.RouteType, a, w.snapshot) {
		if f.Labels != "app=a" {
			t.Errorf("the facet has the labels %q", f.Labels)
		}
	}
}
