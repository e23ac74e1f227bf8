package writeback

import (
	"maps"
	"slices"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/writeback/wanted"
)

// TestG53ProblemsOfSecretsNameTheirGateways: of a problem with a Secret, the objects are looked at
// whose listeners refer to it, as long as they do.
func TestG53ProblemsOfSecretsNameTheirGateways(t *testing.T) {
	f := newFollow()
	gateway := func(name string) federation.ObjectKey {
		return federation.ObjectKey{Group: "gateway.networking.k8s.io", Kind: "Gateway", Namespace: "shop", Name: name}
	}
	refer := func(name string, secrets ...string) {
		f.note(ref{"c1", gateway(name)}, gateway(name), notes{secrets: secrets})
	}
	affected := func(title string) (names []string) {
		found := map[ref]struct{}{}
		f.told(wanted.News{Titles: []string{title}}, found)
		for at := range maps.Keys(found) {
			names = append(names, at.key.Name)
		}
		slices.Sort(names)
		return names
	}
	refer("edge", "secret c1/shop/a", "secret c1/shop/b")
	refer("wide", "secret c1/shop/b")
	for title, want := range map[string][]string{
		"secret c1/shop/a": {"edge"}, "secret c1/shop/b": {"edge", "wide"}, "secret c1/shop/c": nil, gateway("wide").Title(): {"wide"},
	} {
		if got := affected(title); !slices.Equal(got, want) {
			t.Errorf("%s affects %q", title, got)
		}
	}
	refer("edge", "secret c1/shop/c")
	f.forget(ref{"c1", gateway("wide")})
	if a, b, c := affected("secret c1/shop/a"), affected("secret c1/shop/b"), affected("secret c1/shop/c"); a != nil || b != nil ||
		!slices.Equal(c, []string{"edge"}) {
		t.Errorf("after the references changed, they affect %q, %q and %q", a, b, c)
	}
}
