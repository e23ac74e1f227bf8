package serviceimport

import (
	"maps"
	"testing"

	"pgregory.net/rapid"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/kube/listwatch"
)

// TestPropertyImportsAreAsComputedFromNothing: after each edit of a random history, what a cluster should
// have is what a writer finds that has just started, and a writer says that there is work if that changed.
func TestPropertyImportsAreAsComputedFromNothing(t *testing.T) {
	digests := func(f *importWriter) map[listwatch.Key]string {
		all := map[listwatch.Key]string{}
		for key, i := range f.wanted {
			all[key] = i.digest()
		}
		return all
	}
	exported := 0
	rapid.Check(t, func(t *rapid.T) {
		mesh, follows := federation.NewAggregate(nil), &importWriter{wanted: map[listwatch.Key]Import{}}
		for range rapid.IntRange(1, 15).Draw(t, "edits") {
			name := rapid.SampledFrom([]string{"web", "api"}).Draw(t, "name")
			key := federation.ServiceKey{Hostname: federation.Hostname(name + ".shop.svc." + federation.ClusterSetDomain), Namespace: "shop"}
			if rapid.IntRange(0, 3).Draw(t, "other") == 0 {
				key.Hostname = federation.Hostname(name + ".shop.svc.cluster.local")
			}
			var edit federation.Edit
			if rapid.IntRange(0, 2).Draw(t, "gone") == 0 {
				edit.Services.Gone = []federation.ServiceKey{key}
			} else {
				shard := &federation.Shard{Ports: []federation.Port{{
					Name: "http", Number: rapid.SampledFrom([]uint16{80, 81}).Draw(t, "port"), Protocol: federation.HTTP,
				}}}
				edit.Services.Set = map[federation.ServiceKey]*federation.Shard{key: shard}
			}
			cluster := rapid.SampledFrom([]federation.ClusterID{"c1", "c2"}).Draw(t, "cluster")
			mesh.Open(federation.ShardKey{Cluster: cluster, Provider: federation.Kubernetes}).Update(edit)
			if rapid.Bool().Draw(t, "looks later") {
				continue
			}
			before := digests(follows)
			moved := follows.follow(mesh.Latest())
			fresh := &importWriter{wanted: map[listwatch.Key]Import{}}
			fresh.follow(mesh.Latest())
			now, want := digests(follows), digests(fresh)
			if !maps.Equal(now, want) {
				t.Fatalf("the imports are %v, from nothing %v", now, want)
			}
			if moved != !maps.Equal(before, now) {
				t.Fatalf("there is work: %t; before the imports were %v, now %v", moved, before, now)
			}
			exported += len(now)
		}
	})
	if exported == 0 {
		t.Error("no service was ever exported")
	}
}
