package gatewayapi

import (
	"fmt"
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation"
)

// largest is a Gateway with as many listeners as one can have.
func largest() string {
	var text strings.Builder
	text.WriteString(edge)
	for i := range 64 {
		fmt.Fprintf(&text, "  - {name: l%d, port: %d, protocol: HTTP}\n", i, 8000+i)
	}
	return strings.TrimSpace(text.String())
}

// large has n routes at each listener of the largest Gateway.
func large(t *testing.T, n int) *fixture {
	w := newFixture(t)
	w.apply("", largest())
	documents := make([]string, n)
	for i := range documents {
		documents[i] = strings.TrimPrefix(route(fmt.Sprintf("r-%d", i),
			rules(fmt.Sprintf("  - {matches: [{path: {value: /p%d}}], backendRefs: [{name: web, port: 80}]}\n", i))), "---\n")
	}
	w.apply("", strings.Join(documents, "\n---\n"))
	return w
}

// TestG27LargeGatewaysCostInProportion: of 64 listeners with 1,000 routes each, what a change of
// one route costs grows with the routes of its Gateway, and another Gateway costs nothing more.
func TestG27LargeGatewaysCostInProportion(t *testing.T) {
	cost := func(n int) (edge, other float64) {
		w := large(t, n)
		w.apply("",
			"apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: small, namespace: shop}\nspec: {gatewayClassName: mesh, listeners: [{name: http, port: 80, protocol: HTTP}]}")
		s := w.aggregate.Latest()
		measure := func(name string, runs int) float64 { // the mean of several hides what the runtime allocates meanwhile
			key := federation.GatewayAPI.Gateway.Key("shop", name)
			return testing.AllocsPerRun(runs, func() {
				if m := translate(s.Read(), key); len(m.objects) == 0 {
					t.Fatalf("the Gateway %s is not translated", name)
				}
			})
		}
		return measure("edge", 1), measure("small", 100)
	}
	few, fewOther := cost(100)
	many, manyOther := cost(1000)
	t.Logf("%.0f allocations with 100 routes, %.0f with 1,000", few, many)
	if many > 11*few {
		t.Errorf("ten times the routes cost %.1f times", many/few)
	}
	if manyOther > 1.1*fewOther {
		t.Errorf("another Gateway costs %.0f allocations beside 1,000 routes, %.0f beside 100", manyOther, fewOther)
	}
}

// TestG27ContestedAndBrokenRoutesAffectNoOthers: routes that contest a host, refer to nothing or
// to each other's Services leave what others have as it is.
func TestG27ContestedAndBrokenRoutesAffectNoOthers(t *testing.T) {
	given := func(more string) map[string]bool {
		w := newFixture(t)
		w.apply("", strings.TrimSpace(edge+"  - {name: http, port: 80, protocol: HTTP}\n  - {name: tcp, port: 81, protocol: TCP}\n"+
			route("good", "  hostnames: [good.example]\n"+rules("  - backendRefs: [{name: web, port: 80}]\n"))+
			strings.Replace(route("first", rules("  - backendRefs: [{name: web, port: 80}]\n")), "HTTPRoute", "TCPRoute", 1)+more))
		objects, _ := Translate(w.aggregate.Latest())
		all := map[string]bool{}
		for _, o := range objects {
			all[string(o.Manifest)] = true
		}
		return all
	}
	for name, more := range map[string]string{
		"another kind for the host": strings.Replace(route("late", "  hostnames: [good.example]\n"+
			rules("  - backendRefs: [{name: api, port: 80}]\n")), "HTTPRoute", "GRPCRoute", 1),
		"another route of the port": strings.Replace(route("late", rules("  - backendRefs: [{name: api, port: 80}]\n")),
			"HTTPRoute", "TCPRoute", 1),
		"a Service that is not": route("late", "  hostnames: [bad.example]\n"+rules("  - backendRefs: [{name: none, port: 80}]\n")),
		"a Gateway that is not": strings.Replace(route("late", rules("  - backendRefs: [{name: web, port: 80}]\n")),
			"{name: edge, namespace: shop}", "{name: late, namespace: shop}", 1),
		"a redirect to itself": route("late", "  hostnames: [bad.example]\n"+
			rules("  - filters: [{type: RequestRedirect, requestRedirect: {hostname: bad.example}}]\n")),
		"a route that mirrors to it": route("late", "  hostnames: [bad.example]\n"+
			rules("  - {filters: [{type: RequestMirror, requestMirror: {backendRef: {name: none, port: 1}}}], backendRefs: [{name: none, port: 1}]}\n")),
	} {
		t.Run(name, func(t *testing.T) {
			with := given(more)
			for manifest := range given("") {
				if !with[manifest] {
					t.Errorf("with the route, this is missing: %s", manifest)
				}
			}
		})
	}
}
