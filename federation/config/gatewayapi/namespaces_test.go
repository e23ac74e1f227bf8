package gatewayapi

import (
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation"
)

// labelled is a Namespace with labels, as the hub keeps it.
func labelled(name, labels string) string {
	return "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: " + name + "}\nspec: {labels: " + labels + "}\n"
}

// routeIn is a route of another namespace for the Gateway edge.
func routeIn(namespace, name string) string {
	return strings.Replace(route(name, rules("  - backendRefs: [{name: web, port: 80}]\n")), ", namespace: shop}",
		", namespace: "+namespace+"}", 1)
}

// TestG59NamespacesByLabels: a listener allows the namespaces whose labels its selector matches. A
// namespace of which the labels are not known is not allowed.
func TestG59NamespacesByLabels(t *testing.T) {
	selecting := func(selector string) string {
		return edge + "  - {name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: Selector, selector: " + selector + "}}}\n"
	}
	const (
		server   = "Gateway shop of c1 {hosts:[*],port:{name:http,number:80,protocol:HTTP}}"
		all      = "VirtualService shop of c1 *"
		other    = "  {match:[{uri:{prefix:/}}],route:[{to:{host:web.other,port:{number:80}},weight:1}]}"
		refused  = "NOT_ALLOWED_BY_LISTENERS HTTPRoute.gateway.networking.k8s.io "
		of       = " of cluster c1 spec.parentRefs[0]"
		unread   = "BACKEND_NOT_FOUND HTTPRoute.gateway.networking.k8s.io unread/u of cluster c1 spec.rules[0].backendRefs[0]"
		selector = "NOT_HONOURED Gateway.gateway.networking.k8s.io shop/edge of cluster c1 spec.listeners[0].allowedRoutes.namespaces.selector"
	)
	routes := routeIn("shop", "s") + routeIn("other", "o") + routeIn("unread", "u")
	for name, test := range map[string]translation{
		"labels": {
			selecting("{matchLabels: {team: b}}") + routes + labelled("shop", "{team: a}") + labelled("other", "{team: b}"),
			[]string{server, all, other, refused + "shop/s" + of, refused + "unread/u" + of, unread},
		},
		"expressions": {
			selecting("{matchExpressions: [{key: team, operator: NotIn, values: [a]}]}") + routes + labelled("shop",
				"{team: a}") + labelled("other", "{}"),
			[]string{server, all, other, refused + "shop/s" + of, refused + "unread/u" + of, unread},
		},
		"labels and names": {
			selecting("{matchLabels: {team: b, kubernetes.io/metadata.name: other}}") + routes + labelled("shop", "{team: b}") + labelled("other",
				"{team: b, kubernetes.io/metadata.name: none}"),
			[]string{server, all, other, refused + "shop/s" + of, refused + "unread/u" + of, unread},
		},
		"labels that the hub does not read": {
			selecting("{matchLabels: {team: b}}") + routes + labelled("other", "{team: b}"),
			[]string{server, selector, refused + "other/o" + of, refused + "shop/s" + of, refused + "unread/u" + of, unread},
		},
	} {
		t.Run(name, func(t *testing.T) { test.runOf(t, "c1") })
	}
}

// TestG59ChangedLabels: a namespace whose labels change is allowed or not, at the cost of the
// Gateways that select by labels.
func TestG59ChangedLabels(t *testing.T) {
	w := newFixture(t)
	w.apply("c1",
		strings.TrimSpace(edge+
			"  - {name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: {team: b}}}}}\n"+
			routeIn("other", "o")+labelled("shop", "{team: a}")+labelled("other", "{team: a}")))
	b := newTranslations(nil)
	routes := func() (n int) {
		b.take(w.aggregate.Latest())
		for _, e := range b.set.Everything() {
			if e.New.Key.Kind == "VirtualService" {
				n++
			}
		}
		return n
	}
	if n := routes(); n != 0 {
		t.Fatalf("%d routes attach", n)
	}
	w.apply("c1", strings.TrimPrefix(labelled("other", "{team: b}"), "---\n"))
	if n := routes(); n != 1 {
		t.Errorf("with the label, %d routes attach", n)
	}
	w.delete(federation.ObjectKey{Kind: "Namespace", Name: "other", Cluster: "c1"})
	if n := routes(); n != 0 {
		t.Errorf("without the namespace, %d routes attach", n)
	}
}
