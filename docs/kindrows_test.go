package docs

import (
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/xds/envoy/supported"
)

// TestEveryKindHasItsRows: a kind has a schema, a row in federation/config/kind and a
// row in xds/envoy/supported. Kinds of the hub alone have no schema.
func TestEveryKindHasItsRows(t *testing.T) {
	set := schemas(t)
	kinds := map[federation.Kind]bool{}
	for _, k := range set.Kinds() {
		kinds[k.Kind] = true
	}
	for _, r := range kind.All() {
		kinds[r.Kind] = true
	}
	for _, k := range supported.Kinds() {
		kinds[k] = true
	}
	for k := range kinds {
		if _, known := set.Kind(k); known == kind.Internal(k) {
			t.Errorf("%s: there is a schema: %t; it is for the hub alone: %t", k, known, kind.Internal(k))
		}
		if !kind.Of(k).Known() {
			t.Errorf("%s has no row in federation/config/kind", k)
		}
		if !supported.Knows(k) {
			t.Errorf("%s has no row in xds/envoy/supported", k)
		}
	}
}
