package crd_test

import (
	"testing"

	"sigs.k8s.io/yaml"

	"isthmus.dev/isthmus/federation/config/kind"
)

// TestG97UnknownFieldsOfCustomResources: of what an API server with newer definitions accepted, a field that is not known
// is removed, but not one that chooses what the object applies to.
func TestG97UnknownFieldsOfCustomResources(t *testing.T) {
	const route = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: a, namespace: shop}\nspec: "
	const policy = "apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: a, namespace: shop}\nspec: "
	const rule = "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: a, namespace: shop}\nspec: "
	for _, test := range []struct{ manifest, unknown, refused string }{
		{route + "{parentRefs: [{name: edge}]}", "", ""},
		{route + "{rules: [{novelty: {attempts: 3}}]}", "spec.rules[0].novelty", ""},
		{route + "{novelty: 1, rules: [{matches: [{cookies: 1}]}]}", "spec.novelty", "spec.rules[0].matches[0].cookies"},
		{route + "{parentRefs: [{name: edge, zone: a}]}", "", "spec.parentRefs[0].zone"},
		{policy + "{rules: [{from: [{source: {zones: [a]}}]}]}", "", "spec.rules[0].from[0].source.zones"},
		{policy + "{novelty: 1}", "", "spec.novelty"},
		{rule + "{host: web, trafficPolicy: {novelty: 1, connectionPool: {tcp: {maxConnections: 1}}}}", "spec.trafficPolicy.novelty", ""},
		{rule + "{host: web, trafficPolicy: {tls: {mode: SIMPLE, pins: [a]}}}", "", "spec.trafficPolicy.tls.pins"},
	} {
		read := func() (object map[string]any) {
			t.Helper()
			if err := yaml.Unmarshal([]byte(test.manifest), &object); err != nil {
				t.Fatal(err)
			}
			return object
		}
		admitted, problems := kind.Schema{Set: kinds(t), Newer: true}.Admit(read())
		var refused, unknown string
		for _, p := range problems {
			refused += p.Field
		}
		for _, p := range admitted.Unknown {
			unknown += p.Field
		}
		if test.refused == "" && unknown != test.unknown || refused != test.refused || (admitted.Object == nil) != (refused != "") {
			t.Errorf("%s: unknown are %q, refused are %q", test.manifest, unknown, refused)
		}
		if _, problems := (kind.Schema{Set: kinds(t)}).Admit(read()); (len(problems) > 0) != (test.unknown+test.refused != "") {
			t.Errorf("%s: of a user, the problems are %v", test.manifest, problems)
		}
	}
}
