package fetch

import (
	"maps"
	"testing"

	security "istio.io/api/security/v1beta1"
	"pgregory.net/rapid"

	"isthmus.dev/isthmus/federation"
)

// TestPropertyDemandIsAsComputedFromNothing: after each edit of a random history, the sources are those
// of all its objects, those for one cluster included, and they are computed again only after a change of a
// RequestAuthentication.
func TestPropertyDemandIsAsComputedFromNothing(t *testing.T) {
	kinds := []federation.Kind{federation.RequestAuthenticationKind, {Group: "networking.istio.io", Name: "VirtualService"}}
	rapid.Check(t, func(t *rapid.T) {
		mesh, kept := federation.NewAggregate(nil), demands()
		writer := mesh.Open(federation.ShardKey{Provider: federation.Operator})
		writer.Update(federation.Edit{Clusters: federation.Delta[federation.ClusterID, federation.ClusterSpec]{
			Set: map[federation.ClusterID]federation.ClusterSpec{"c1": {}},
		}}) // the changes since version 0 are all
		before := kept.Get(mesh.Latest(), struct{}{})
		for range rapid.IntRange(1, 20).Draw(t, "edits") {
			kind := rapid.SampledFrom(kinds).Draw(t, "kind")
			key := federation.ObjectKey{
				Group: kind.Group, Kind: kind.Name, Namespace: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "namespace"),
				Name:    rapid.SampledFrom([]string{"x", "y"}).Draw(t, "name"),
				Cluster: rapid.SampledFrom([]federation.ClusterID{"", "c1"}).Draw(t, "cluster"),
			}
			var edit federation.Edit
			if rapid.Bool().Draw(t, "gone") {
				edit.Objects.Gone = []federation.ObjectKey{key}
			} else {
				uri := rapid.SampledFrom([]string{"https://one/keys", "https://two/keys", ""}).Draw(t, "URI")
				edit.Objects.Set = map[federation.ObjectKey]*federation.Object{key: {Key: key, Digest: uri, Spec: &security.RequestAuthentication{
					JwtRules: []*security.JWTRule{{Issuer: "i", JwksUri: uri}},
				}}}
			}
			version := mesh.Latest().Version()
			writer.Update(edit)
			now, want := kept.Get(mesh.Latest(), struct{}{}), demandFor(mesh.Latest().Objects().Of(federation.RequestAuthenticationKind))
			if !maps.Equal(now.fetched, want.fetched) || !maps.Equal(now.refused, want.refused) {
				t.Fatalf("the sources are %+v, from nothing %+v", now, want)
			}
			if changed := mesh.Latest().Version() != version && kind == federation.RequestAuthenticationKind; changed != (now != before) {
				t.Fatalf("%s changed: %t, computed again: %t", key, changed, now != before)
			}
			before = now
		}
	})
}
