package registries_test

import (
	"testing"
	"testing/synctest"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/registries"
)

// An alias stands for one cluster, whatever the order in which clusters claim it;
// the others keep theirs and are told. When it is free the next one has it.
func TestR48AnAliasStandsForOneCluster(t *testing.T) {
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		synctest.Test(t, func(t *testing.T) {
			h := start(t, "")
			defer h.stop()
			claims := registries.NewClaims(h.Supervisor)
			sources := []*registries.Source{claims.Source(0, "the config file", ""), claims.Source(1, "objects", "")}
			attach := func(i int) {
				id := []federation.ClusterID{"c1", "c2"}[i]
				c := cluster(string(id), "1", says(full(byte(i+1), 2)))
				c.Spec.Aliases = federation.NewAliases([]string{"Kubernetes", "gke_" + string(id), "c1"})
				sources[i].Attach(c)
				synctest.Wait()
			}
			named := func(name, want federation.ClusterID) {
				t.Helper()
				if got := h.Latest().ClusterNamed(name); got != want {
					t.Errorf("%s stands for %s, want %s", name, got, want)
				}
			}
			for _, i := range order {
				attach(i)
			}
			named("Kubernetes", "c1")
			named("gke_c1", "c1")
			named("gke_c2", "c2")
			named("c1", "c1")
			named("nobody", "nobody")
			if got := h.problems("c1"); got != "" {
				t.Errorf("the first has the problems %s", got)
			}
			if got := h.problems("c2"); got != "DUPLICATE_CLUSTER_ALIAS aliases; DUPLICATE_CLUSTER_ALIAS aliases" {
				t.Errorf("the second has the problems %q", got)
			}
			if holder, _ := claims.AliasHolder("Kubernetes"); holder != "c1" {
				t.Errorf("%s has the alias", holder)
			}
			sources[0].Detach("c1")
			synctest.Wait()
			named("Kubernetes", "c2")
			if got := h.problems("c2"); got != "" {
				t.Errorf("alone it has the problems %q", got)
			}
		})
	}
}
