package apply_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

// R63: of a large request, manifests wait for their merge as texts, and errors name their
// places nevertheless.
func TestR63ErrorsOfLargeRequestsHavePlaces(t *testing.T) {
	const sidecar = "apiVersion: networking.istio.io/v1\nkind: Sidecar\nmetadata: {name: s%d, namespace: shop}\nspec:\n  egress: %s\n---\n"
	var text strings.Builder
	for i := range 300 {
		fmt.Fprintf(&text, sidecar, i, "[{hosts: [./*]}]")
	}
	fmt.Fprintf(&text, sidecar, 290, "[{hosts: [./*]}]")
	fmt.Fprintf(&text, sidecar, 301, "5")
	r := newFixture(t).apply(text.String())
	var got []string
	for _, e := range r.Errors {
		got = append(got, fmt.Sprintf("%s %s %s", e.Place, e.Code, e.Field))
	}
	if want := "mesh.yaml:1803:12 DUPLICATE_OBJECT metadata.name, mesh.yaml:1807:1 NOT_CHECKED , mesh.yaml:1811:3 TYPE spec.egress"; strings.Join(got, ", ") != want {
		t.Errorf("got %q", got)
	}
	if !strings.Contains(r.Errors[0].Message, "mesh.yaml:1743:12") {
		t.Errorf("the first one is not named: %s", r.Errors[0].Message)
	}
}

// R63: from the text to the findings, an object is decoded, merged and written once. It was
// 270 kB for each.
func TestR63LargeAppliesAreFrugal(t *testing.T) {
	const objects = 400
	w := newFixture(t)
	w.apply(string(testbed.PartnerEntries("first", 0, 1)), dryRun) // compiles the schema
	text := string(testbed.PartnerEntries("shop", 0, objects))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if r := w.apply(text, dryRun); len(r.Errors) > 0 || len(r.Changes) != objects {
		t.Fatal(r.Errors)
	}
	runtime.ReadMemStats(&after)
	const most = 110_000 * allowance
	if got := (after.TotalAlloc - before.TotalAlloc) / objects; got > most {
		t.Errorf("applying an object takes %d bytes, at most %d are expected", got, most)
	}
}
