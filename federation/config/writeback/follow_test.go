package writeback

import (
	"slices"
	"testing"

	"isthmus.dev/isthmus/federation"
)

// TestG53ProblemsOfSecretsNameTheirGateways: of a problem with a Secret, the objects are looked at
// whose listeners refer to it, as long as they do.
func TestG53ProblemsOfSecretsNameTheirGateways(t *testing.T) {
	f, mesh := newDependents(), federation.NewAggregate(nil)
	hub := mesh.Open(federation.ShardKey{Cluster: "hub", Provider: federation.External})
	hub.Update(federation.Edit{Status: &federation.RegistryStatus{Phase: federation.Ready}})
	gateway := func(name string) federation.ObjectKey {
		return federation.ObjectKey{Group: "gateway.networking.k8s.io", Kind: "Gateway", Namespace: "shop", Name: name}
	}
	refer := func(name string, secrets ...string) {
		r := mesh.Latest().Read()
		for _, secret := range append(secrets, gateway(name).Title()) {
			federation.ReadProblems(r, federation.ProblemSubject{Cluster: "hub", Object: secret})
		}
		f.note(ref{"c1", gateway(name)}, gateway(name), inputs{read: r.Deps()})
	}
	affected := func(title string) (names []string) {
		before := mesh.Latest().Version()
		for _, problem := range []federation.Problem{{Object: title, Code: "A"}, {Object: title, Code: "B"}} {
			hub.Update(federation.Edit{Problems: federation.Delta[string, federation.Problem]{Set: map[string]federation.Problem{title: problem}}})
		}
		for _, at := range f.index.Affected(mesh.Latest().ChangesSince(before), mesh.Latest()) {
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
