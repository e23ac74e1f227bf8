package gatewayapi

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
)

// meshRoute is a route whose parents are the references.
func meshRoute(kind, namespace, name, parents, spec string) string {
	return "---\napiVersion: gateway.networking.k8s.io/v1\nkind: " + kind + "\nmetadata: {name: " + name + ", namespace: " + namespace +
		"}\nspec:\n  parentRefs: [" + parents + "]\n" + spec
}

const (
	toService = `{group: "", kind: Service, name: web, namespace: shop}`
	toPort    = `{group: "", kind: Service, name: web, namespace: shop, port: 80}`
)

var (
	onWebOfShop = rules("  - backendRefs: [{name: web, namespace: shop, port: 80}]\n")
	onAPI       = rules("  - {matches: [{path: {value: /api}}], backendRefs: [{name: api, namespace: shop, port: 80}]}\n")
)

// TestG54ServiceParents: routes whose parent is a Service are VirtualServices of sidecars: of all,
// or of those of the namespace of the route.
func TestG54ServiceParents(t *testing.T) {
	const (
		host = "VirtualService shop web.shop.svc.cluster.local"
		api  = "  {match:[{uri:{exact:/api}},{uri:{prefix:/api/}}],route:[{to:{host:api.shop,port:{number:80}},weight:1}]}"
	)
	for name, test := range map[string]translation{
		"a route of the namespace of the Service": {
			meshRoute("HTTPRoute", "shop", "r", toService, onWebOfShop), []string{host, "  {match:[{uri:{prefix:/}}]," + web + "}"},
		},
		"a route of another namespace needs no ReferenceGrant": {
			meshRoute("HTTPRoute", "other", "r", toService, onWebOfShop), []string{
				"VirtualService other web.shop.svc.cluster.local",
				"  {match:[{uri:{prefix:/}}]," + web + "}",
			},
		},
		"the routes of a namespace are one object": {
			meshRoute("HTTPRoute", "shop", "r", toService, onWebOfShop) + meshRoute("HTTPRoute", "shop", "s", toService, onAPI),
			[]string{host, api, "  {match:[{uri:{prefix:/}}]," + web + "}"},
		},
		"a port; requests to others go to the Service": {
			meshRoute("HTTPRoute", "shop", "r", strings.Replace(toPort, "web", "two", 1), onWebOfShop),
			[]string{
				"VirtualService shop two.shop.svc.cluster.local", "  {match:[{port:80,uri:{prefix:/}}]," + web + "}",
				"  {match:[{port:81}],route:[{to:{host:two.shop,port:{number:81}}}]}",
			},
		},
		"a port by its name": {
			meshRoute("HTTPRoute", "shop", "r", `{group: "", kind: Service, name: two, sectionName: http-81}`, onWebOfShop) +
				meshRoute("HTTPRoute", "shop", "s",
					`{group: "", kind: Service, name: two, sectionName: none}, {group: "", kind: Service, name: two, sectionName: http-81, port: 80}`,
					onWebOfShop),
			[]string{
				"VirtualService shop two.shop.svc.cluster.local", "  {match:[{port:81,uri:{prefix:/}}]," + web + "}",
				"  {match:[{port:80}],route:[{to:{host:two.shop,port:{number:80}}}]}",
				"NO_MATCHING_PARENT HTTPRoute.gateway.networking.k8s.io shop/s spec.parentRefs[0]",
				"NO_MATCHING_PARENT HTTPRoute.gateway.networking.k8s.io shop/s spec.parentRefs[1]",
			},
		},
		"connections": {
			meshRoute("TCPRoute", "shop", "r", toPort, onWebOfShop) + meshRoute("TCPRoute", "shop", "s", toPort, onWebOfShop),
			[]string{
				host, "  {match:[{port:80}]," + web + "}",
				"ROUTE_TAKEN TCPRoute.gateway.networking.k8s.io shop/s spec.parentRefs[0]",
			},
		},
		"HTTPRoutes and GRPCRoutes": {
			meshRoute("GRPCRoute", "shop", "s", toService, onWebOfShop) + meshRoute("HTTPRoute", "shop", "r", toService, onWebOfShop),
			[]string{
				host, "  {match:[{uri:{prefix:/}}]," + web + "}",
				"ROUTE_TAKEN HTTPRoute.gateway.networking.k8s.io shop/r spec.parentRefs[0]",
			},
		},
		"what does not exist": {
			meshRoute("HTTPRoute", "shop", "r", `{group: "", kind: Service, name: none}, {group: "", kind: Service, name: web, port: 99}`,
				onWebOfShop),
			[]string{
				"NO_MATCHING_PARENT HTTPRoute.gateway.networking.k8s.io shop/r spec.parentRefs[0]",
				"NO_MATCHING_PARENT HTTPRoute.gateway.networking.k8s.io shop/r spec.parentRefs[1]",
			},
		},
		"what has no effect": {
			meshRoute("HTTPRoute", "shop", "r", toService, "  hostnames: [a.example]\n"+onWebOfShop) +
				meshRoute("TLSRoute", "shop", "t", toService, "  hostnames: [a.example]\n"+onWebOfShop),
			[]string{
				host, "  {match:[{uri:{prefix:/}}]," + web + "}",
				"NOT_HONOURED HTTPRoute.gateway.networking.k8s.io shop/r spec.hostnames",
				"NOT_HONOURED TLSRoute.gateway.networking.k8s.io shop/t spec.parentRefs[0]",
			},
		},
	} {
		t.Run(name, test.run)
	}
}

// TestG54OldestRouteGives: whichever route of a Service is deleted or created, there is one VirtualService
// with the rules of those that are left.
func TestG54OldestRouteGives(t *testing.T) {
	w := newFixture(t)
	w.apply("", strings.TrimPrefix(meshRoute("HTTPRoute", "shop", "r", toService, onWebOfShop)+meshRoute("HTTPRoute", "shop",
		"s", toService, onAPI), "---\n"))
	b := newTranslations(nil)
	given := map[federation.ObjectKey]*config.Object{}
	take := func() (lines []string) {
		for _, e := range b.take(w.aggregate.Latest()) {
			if e.New == nil {
				delete(given, e.Old.Key)
			} else {
				given[e.New.Key] = e.New
			}
		}
		for _, o := range given {
			lines = append(lines, shown(o)...)
		}
		return lines
	}
	if lines := take(); len(lines) != 3 {
		t.Fatalf("two routes are %q", lines)
	}
	key := federation.GatewayAPI.HTTPRoute.Key("shop", "r")
	w.delete(key)
	if lines := take(); len(lines) != 2 || !strings.Contains(lines[1], "/api") {
		t.Errorf("without the older route they are %q", lines)
	}
	key.Name = "s"
	w.delete(key)
	if lines := take(); len(lines) != 0 {
		t.Errorf("without any route they are %q", lines)
	}
}

// TestG54OwnRoutesComeFirst: the object of a route for the callers of its namespace is for them
// alone, and older than others.
func TestG54OwnRoutesComeFirst(t *testing.T) {
	w := newFixture(t)
	w.apply("", strings.TrimPrefix(meshRoute("HTTPRoute", "other", "r", toService, onWebOfShop)+meshRoute("HTTPRoute", "shop",
		"s", toService, onAPI), "---\n"))
	objects, _ := Translate(w.aggregate.Latest())
	for _, o := range objects {
		own := o.Key.Namespace == "other"
		if strings.Contains(string(o.Manifest), `"exportTo":["."]`) != own || strings.Contains(string(o.Manifest), "creationTimestamp") == own {
			t.Errorf("%s is %s", o.Key, o.Manifest)
		}
	}
	if len(objects) != 2 {
		t.Errorf("there are %d objects", len(objects))
	}
}

// TestG54ManyRoutesOfOneService: with five times as many routes of one Service, a change of one of
// them costs about five times as much.
func TestG54ManyRoutesOfOneService(t *testing.T) {
	allocations := func(count int) float64 {
		w := newFixture(t)
		var text strings.Builder
		for i := range count {
			text.WriteString(meshRoute("HTTPRoute", "shop", fmt.Sprintf("r%03d", count-i), toService,
				rules(fmt.Sprintf("  - {matches: [{path: {value: /p%d}}], backendRefs: [{name: web, port: 80}]}\n", i))))
		}
		w.apply("", strings.TrimPrefix(text.String(), "---\n"))
		b := newTranslations(nil)
		b.take(w.aggregate.Latest())
		w.apply("", strings.TrimPrefix(meshRoute("HTTPRoute", "shop", "r007", toService, onAPI), "---\n"))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if events := b.take(w.aggregate.Latest()); len(events) != 1 {
			t.Fatalf("the change of one route is %d events", len(events))
		}
		runtime.ReadMemStats(&after)
		return float64(after.Mallocs - before.Mallocs)
	}
	if few, many := allocations(40), allocations(200); many > 8*few {
		t.Errorf("a change costs %v allocations among 40 routes, and %v among 200", few, many)
	} else {
		t.Logf("a change costs %v allocations among 40 routes, and %v among 200", few, many)
	}
}
