package gatewayapi

import (
	"fmt"
	"strings"
	"testing"
)

// open is a Gateway that allows ListenerSets of all namespaces.
var open = strings.Replace(plain, "  listeners:", "  allowedListeners: {namespaces: {from: All}}\n  listeners:", 1)

// listenerSet is a ListenerSet of the Gateway edge.
func listenerSet(namespace, name, listeners string) string {
	return "---\napiVersion: gateway.networking.k8s.io/v1\nkind: ListenerSet\nmetadata: {name: " + name + ", namespace: " + namespace +
		"}\nspec:\n  parentRef: {name: edge, namespace: shop}\n  listeners:\n" + listeners
}

// ofSet is a route of the namespace other for a ListenerSet.
func ofSet(name, set string) string {
	return "---\napiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: " + name +
		", namespace: other}\nspec:\n  parentRefs: [{kind: ListenerSet, name: " + set + "}]\n" +
		rules("  - backendRefs: [{name: web, port: 80}]\n")
}

// TestG28ListenerSets: which ListenerSets add listeners to a Gateway, which routes attach to them,
// and who wins a conflict. The scenario listener-sets-that-contest has ListenerSets of two clusters and namespaces (U41).
func TestG28ListenerSets(t *testing.T) {
	const other = "  {match:[{uri:{prefix:/}}],route:[{to:{host:web.other,port:{number:80}},weight:1}]}"
	for name, test := range map[string]translation{
		"a route of a ListenerSet attaches to its listeners alone": {
			open + listenerSet("other", "more", "  - {name: http, port: 8080, protocol: HTTP, hostname: b.example}\n") + ofSet("r", "more") +
				route("s", rules("  - backendRefs: [{name: api, port: 80}]\n")),
			[]string{
				"Gateway shop {hosts:[*],port:{name:http,number:80,protocol:HTTP}}",
				"Gateway shop {hosts:[b.example],port:{name:http,number:8080,protocol:HTTP}}",
				"VirtualService shop *", "  {match:[{uri:{prefix:/}}],route:[{to:{host:api.shop,port:{number:80}},weight:1}]}",
				"VirtualService shop b.example", other,
			},
		},
		"without a word, a Gateway allows none": {
			plain + listenerSet("shop", "more", "  - {name: http, port: 8080, protocol: HTTP}\n"),
			[]string{server, "NOT_ALLOWED ListenerSet.gateway.networking.k8s.io shop/more spec.parentRef"},
		},
		"ListenerSets of the same namespace": {
			strings.Replace(open, "from: All", "from: Same", 1) + listenerSet("other", "more", "  - {name: http, port: 8080, protocol: HTTP}\n") +
				listenerSet("shop", "own", "  - {name: http, port: 8081, protocol: HTTP}\n") + ofSet("r", "more"),
			[]string{
				server, "Gateway shop {hosts:[*],port:{name:http,number:8081,protocol:HTTP}}",
				"NO_MATCHING_PARENT HTTPRoute.gateway.networking.k8s.io other/r spec.parentRefs[0]",
				"NOT_ALLOWED ListenerSet.gateway.networking.k8s.io other/more spec.parentRef",
			},
		},
		"the Gateway and the older ListenerSet win": {
			open + listenerSet("other", "late", "  - {name: a, port: 80, protocol: HTTP}\n  - {name: b, port: 8080, protocol: HTTP}\n") +
				listenerSet("other", "later", "  - {name: c, port: 8080, protocol: TCP}\n"),
			[]string{
				server, "Gateway shop {hosts:[*],port:{name:http,number:8080,protocol:HTTP}}",
				"HOSTNAME_CONFLICT ListenerSet.gateway.networking.k8s.io other/late spec.listeners[0].hostname",
				"PROTOCOL_CONFLICT ListenerSet.gateway.networking.k8s.io other/later spec.listeners[0].protocol",
			},
		},
		"a listener that lost contests nothing": {
			open + listenerSet("other", "more",
				"  - {name: a, port: 80, protocol: HTTP, hostname: b.example}\n  - {name: b, port: 80, protocol: TCP}\n"),
			[]string{
				server, "Gateway shop {hosts:[b.example],port:{name:http,number:80,protocol:HTTP}}", "VirtualService shop b.example",
				"  {directResponse:{status:404}}",
				"PROTOCOL_CONFLICT ListenerSet.gateway.networking.k8s.io other/more spec.listeners[1].protocol",
			},
		},
		"certificates are those of the namespace of the ListenerSet": {
			open + listenerSet("other", "more",
				"  - {name: a, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: cert}]}}\n  - {name: b, port: 444, protocol: HTTPS, tls: {certificateRefs: [{name: cert, namespace: shop}]}}\n"),
			[]string{
				server,
				"REF_NOT_PERMITTED ListenerSet.gateway.networking.k8s.io other/more spec.listeners[0].tls.certificateRefs[0]",
				"REF_NOT_PERMITTED ListenerSet.gateway.networking.k8s.io other/more spec.listeners[1].tls.certificateRefs[0]",
			},
		},
		"a ListenerSet of a parent of another kind": {
			strings.Replace(open+listenerSet("other", "more", "  - {name: http, port: 8080, protocol: HTTP}\n"), "parentRef: {name: edge,",
				"parentRef: {group: example.com, kind: Bucket, name: edge,", 1),
			[]string{server, "NO_MATCHING_PARENT ListenerSet.gateway.networking.k8s.io other/more spec.parentRef"},
		},
		"a ListenerSet of no Gateway": {
			strings.Replace(open+listenerSet("other", "more", "  - {name: http, port: 8080, protocol: HTTP}\n"), "parentRef: {name: edge,",
				"parentRef: {name: none,", 1) + ofSet("r", "more") + ofSet("s", "none"),
			[]string{
				server,
				"NO_MATCHING_PARENT HTTPRoute.gateway.networking.k8s.io other/r spec.parentRefs[0]",
				"NO_MATCHING_PARENT HTTPRoute.gateway.networking.k8s.io other/s spec.parentRefs[0]",
				"NO_MATCHING_PARENT ListenerSet.gateway.networking.k8s.io other/more spec.parentRef",
			},
		},
	} {
		t.Run(name, test.run)
	}
}

// TestG28ListenersAreBounded: a ListenerSet with which a Gateway would have too many listeners is
// refused as a whole, and others stay.
func TestG28ListenersAreBounded(t *testing.T) {
	var text strings.Builder
	text.WriteString(open)
	for i := range 9 {
		var listeners strings.Builder
		for j := range 64 {
			fmt.Fprintf(&listeners, "  - {name: l%d, port: %d, protocol: HTTP}\n", j, 1000+64*i+j)
		}
		text.WriteString(listenerSet("shop", fmt.Sprintf("s%d", i), listeners.String()))
	}
	w := newFixture(t)
	w.apply("", strings.TrimSpace(text.String()))
	objects, problems := Translate(w.aggregate.Latest())
	if len(objects) != 1+7*64 || len(problems) != 2 || problems[0].Code != "TOO_MANY_LISTENERS" {
		t.Errorf("there are %d objects, and the problems %v", len(objects), problems)
	}
}
