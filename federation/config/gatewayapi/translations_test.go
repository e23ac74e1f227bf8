package gatewayapi

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
)

// follow keeps what the events of translations give.
type follow map[federation.ObjectKey]string

func (f follow) take(events []config.Event) {
	for _, e := range events {
		if e.New == nil {
			delete(f, e.Old.Key)
		} else {
			f[e.New.Key] = fmt.Sprint(e.New.Credentials, string(e.New.Manifest))
		}
	}
}

// TestG20IncrementalEqualsFromNothing: after any change, what is given and what is reported
// are those of a hub that reads everything at once.
func TestG20IncrementalEqualsFromNothing(t *testing.T) {
	seed := uint32(7)
	next := func(n int) int {
		seed = seed*1664525 + 1013904223
		return int(seed>>16) % n
	}
	one := func(of ...string) string { return of[next(len(of))] }
	w, b := newFixture(t), newTranslations(nil)
	seen, routes := follow{}, 0
	roots, policies := authority(t), 0
	for step := range 300 {
		of := []federation.ClusterID{"", "c1"}[next(2)]
		switch next(10) {
		case 0:
			w.apply(of,
				"apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: mesh, creationTimestamp: \"2026-01-01T00:00:00Z\"}\nspec: {controllerName: "+one("isthmus.dev/gateway-controller", "example.com/other")+"}")
		case 1, 2:
			w.apply(of, fmt.Sprintf(`apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: %s, namespace: %s}
spec:
  gatewayClassName: mesh
  listeners:
  - {name: a, port: 80, protocol: HTTP, hostname: %s, allowedRoutes: {namespaces: {from: %s}}}
  - {name: b, port: %d, protocol: HTTPS, tls: {certificateRefs: [{name: cert, namespace: %s}]}}`,
				one("edge", "inner"), one("shop", "other"), one("a.example", `"*.example"`), one("All", "Same"),
				[]int{80, 443}[next(2)], one("shop", "other")))
		case 3:
			w.service(one("shop/web", "other/web"), [][]uint16{nil, {80}, {80, 81}}[next(3)]...)
		case 4:
			w.apply(of,
				fmt.Sprintf("apiVersion: gateway.networking.k8s.io/v1\nkind: ReferenceGrant\nmetadata: {name: g, namespace: %s}\nspec: {from: [{group: gateway.networking.k8s.io, kind: %s, namespace: %s}], to: [{group: \"\", kind: %s}]}",
					one("shop", "other"), one("HTTPRoute", "Gateway"), one("shop", "other"), one("Service", "Secret")))
		case 5:
			if all := slices.Collect(w.state.Objects()); len(all) > 0 {
				w.delete(all[next(len(all))].Key)
			}
		case 6:
			w.apply(of, strings.TrimPrefix(policy(one("p", "q", "r"), one(onWeb, onPort), one(system, fromMap, fromMap)), "---\n"))
		case 7:
			w.apply("c1", strings.TrimPrefix(configMap("roots", one(roots, roots, "none")), "---\n"))
		default:
			w.apply(of, fmt.Sprintf(`apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: %s, namespace: %s}
spec:
  parentRefs: [{name: %s, namespace: %s}]
  hostnames: [%s]
  rules: [{matches: [{path: {value: /%s}}], backendRefs: [{name: web, namespace: %s, port: %d}]}]`,
				one("r", "s", "t"), one("shop", "other"), one("edge", "inner"), one("shop", "other"), one("a.example", `"*.example"`, "b.example"),
				one("x", "y"), one("shop", "other"), 80+next(2)))
		}
		if next(3) == 0 {
			continue // several changes at once
		}
		s := w.aggregate.Latest()
		seen.take(b.take(s))
		objects, problems := Translate(s)
		all := follow{}
		for _, o := range objects {
			all.take([]config.Event{{New: o}})
			if o.Key.Of() == federation.VirtualServiceKind {
				routes++
			}
			if o.Key.Of() == federation.BackendTLSKind {
				policies++
			}
		}
		if diff := cmp.Diff(map[federation.ObjectKey]string(all), map[federation.ObjectKey]string(seen)); diff != "" {
			t.Fatalf("after step %d: %s", step, diff)
		}
		if diff := cmp.Diff(problems, b.set.Problems()); diff != "" {
			t.Fatalf("the problems after step %d: %s", step, diff)
		}
	}
	if routes < 20 || policies < 20 {
		t.Errorf("there were only %d VirtualServices and %d objects of policies to compare", routes, policies)
	}
}

// TestG20ChangesCostWhatTheyAffect: a change has only the Gateways and routes translated again
// that it affects; endpoints affect none.
func TestG20ChangesCostWhatTheyAffect(t *testing.T) {
	w, b := newFixture(t), newTranslations(nil)
	var documents []string
	for i := range 50 {
		documents = append(documents,
			fmt.Sprintf("apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: edge-%d, namespace: shop}\nspec: {gatewayClassName: mesh, listeners: [{name: http, port: 80, protocol: HTTP}]}", i),
			fmt.Sprintf("apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: r-%d, namespace: shop}\nspec: {parentRefs: [{name: edge-%[1]d}], rules: [{backendRefs: [{name: web-%[1]d, port: 80}]}]}", i))
	}
	w.apply("", strings.TrimSpace(strings.SplitN(edge, "---", 2)[0])+"\n---\n"+strings.Join(documents, "\n---\n"))
	b.take(w.aggregate.Latest())
	computed := func(change func()) []string {
		change()
		s := w.aggregate.Latest()
		found := map[string]bool{}
		for _, key := range b.dirty(s.ChangesSince(b.at), s) {
			found[key.Kind+" "+key.Name] = true
		}
		b.take(s)
		return slices.Sorted(maps.Keys(found))
	}
	for name, test := range map[string]struct {
		change func()
		want   []string
	}{
		"a service": {func() { w.service("shop/web-7", 80) }, []string{"Gateway edge-7", "HTTPRoute r-7"}},
		"a route": {func() {
			w.apply("",
				"apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: r-9, namespace: shop}\nspec: {parentRefs: [{name: edge-9}]}")
		}, []string{"Gateway edge-9", "HTTPRoute r-9"}},
		"another service": {func() { w.service("shop/none", 80) }, nil},
		"another object": {func() {
			w.apply("",
				"apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {name: edge-1, namespace: shop}\nspec: {servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: [\"*\"]}]}")
		}, nil},
	} {
		if diff := cmp.Diff(test.want, computed(test.change)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestG23HostsOfSeveralClustersAreReported: the gateways of each cluster use their own.
func TestG23HostsOfSeveralClustersAreReported(t *testing.T) {
	w, b := newFixture(t), newTranslations(nil)
	text := strings.TrimSpace(plain + route("r", "  hostnames: [a.example]\n"+rules("  - backendRefs: [{name: web, port: 80}]\n")))
	shared := func() (all []string) {
		b.take(w.aggregate.Latest())
		for _, p := range b.set.Problems() {
			all = append(all, p.Code)
		}
		return all
	}
	w.apply("c1", text)
	if found := shared(); len(found) > 0 {
		t.Errorf("one cluster has %q", found)
	}
	w.apply("c2", text)
	if diff := cmp.Diff([]string{"HOST_IN_SEVERAL_CLUSTERS"}, shared()); diff != "" {
		t.Error(diff)
	}
	if n := len(b.set.Everything()); n != 4 {
		t.Errorf("two clusters have %d objects", n)
	}
	w.delete(federation.ObjectKey{Group: federation.GatewayAPI.Gateway.Group, Kind: "HTTPRoute", Namespace: "shop", Name: "r", Cluster: "c2"})
	if found := shared(); len(found) > 0 {
		t.Errorf("after the end of one there are %q", found)
	}
}
