package apply_test

import (
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/federation/config/configtest"
	"isthmus.dev/isthmus/federation/config/validation/validationtest"
)

// What breaks a rule of its kind is refused with the code and the field, and what
// has no effect is a finding of the apply.
func TestR27ApplyRefusesWhatIstioRefuses(t *testing.T) {
	cases, err := validationtest.Cases()
	if err != nil {
		t.Fatal(err)
	}
	w := newFixture(t)
	for _, c := range cases {
		r := w.apply(c.Manifest, dryRun)
		var refused []string
		for _, e := range r.Errors {
			refused = append(refused, string(e.Code)+" "+e.Field)
			if e.Message == "" || e.Place.Line == 0 || e.Key.Name == "" {
				t.Errorf("%s: %+v does not say where and why", c.Name, e)
			}
		}
		slices.Sort(refused)
		if !slices.Equal(refused, c.Refused) {
			t.Errorf("%s: refused for %v, want %v", c.Name, refused, c.Refused)
		}
		for _, field := range c.NoEffect {
			if len(c.Refused) == 0 && !slices.ContainsFunc(r.Findings,
				func(f apply.Finding) bool { return f.Field == field && f.Code == "NO_EFFECT" }) {
				t.Errorf("%s: no finding of %s in %+v", c.Name, field, r.Findings)
			}
		}
	}
}

// An object that was stored before a rule was known stays in force, keeps being
// applied as it is, and its findings say what is wrong; a change has to correct it.
func TestR27StoredObjectsStayAndHaveFindings(t *testing.T) {
	w := newFixture(t)
	const bad = `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: old, namespace: shop}
spec: {hosts: [old], http: [{route: [{destination: {host: a}}, {destination: {host: b}}]}]}
`
	base := configtest.Must(t, w.store, smuggled(t, 0, "old",
		`{hosts: [old], http: [{route: [{destination: {host: a}}, {destination: {host: b}}]}]}`))
	if _, err := w.views.WaitFor(t.Context(), base); err != nil {
		t.Fatal(err)
	}
	key := routeKey("old")
	for {
		s := w.snapshots.Latest()
		if _, ok := s.Object(key); ok {
			break
		}
		<-s.Superseded()
	}
	findings := apply.References(w.snapshots.Latest().Read(), key)
	if !slices.ContainsFunc(findings, func(f apply.Finding) bool { return f.Field == "spec.http[0].route" && f.Code == "INVALID" }) {
		t.Errorf("findings %+v", findings)
	}
	if r := w.apply(strings.Replace(bad, "namespace: shop", "namespace: shop, labels: {a: b}", 1), force); codes(r) != "" {
		t.Errorf("a label cannot be added: %+v", r.Errors)
	}
	if r := w.apply(strings.Replace(bad, "hosts: [old]", "hosts: [new]", 1), force); codes(r) != "INVALID spec.http[0].route" {
		t.Errorf("a change of the spec: %+v", r.Errors)
	}
}

// An annotation is checked when it is set, also on an object whose spec stays. One
// that was stored before the rule does not keep others from being set.
func TestR27AnnotationsAreChecked(t *testing.T) {
	manifest := func(name, annotations string) string {
		return "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: " + name + ", namespace: shop, annotations: {" +
			annotations + "}}\nspec: " + goodSpec + "\n"
	}
	w := newFixture(t)
	w.must(manifest("a", ""))
	if r := w.apply(manifest("a", `istio.io/dry-run: "true"`), force); codes(r) != "FORBIDDEN metadata.annotations[istio.io/dry-run]" {
		t.Errorf("the annotation is set: %+v", r.Errors)
	}
	stored, err := yaml.YAMLToJSON([]byte(manifest("old", `istio.io/dry-run: "true"`)))
	if err != nil {
		t.Fatal(err)
	}
	w.commit(routeKey("old"), "networking.istio.io/v1", string(stored))
	if r := w.apply(manifest("old", `istio.io/dry-run: "true", a: b`), force); codes(r) != "" {
		t.Errorf("another annotation cannot be set: %+v", r.Errors)
	}
}
