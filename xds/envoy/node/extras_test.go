package node

import "testing"

// TestFacetsWithEqualExtrasAreEqual whichever way they came to them, so that their proxies share a build.
func TestFacetsWithEqualExtrasAreEqual(t *testing.T) {
	plain := Facet{Scope: ScopeInbound}
	made := Facet{Scope: ScopeInbound, extras: Extras{Sidecar: "shop/web", Patches: "shop/a:0"}.ref()}
	edited := plain
	edited.edit(func(e *Extras) { e.Patches = "shop/a:0" })
	edited.edit(func(e *Extras) { e.Sidecar = "shop/web" })
	if edited != made || edited == plain {
		t.Errorf("%s is not %s", edited, made)
	}
	edited.edit(func(e *Extras) { *e = Extras{} })
	if edited != plain || edited.Extras() != (Extras{}) {
		t.Errorf("%s has extras", edited)
	}
}
