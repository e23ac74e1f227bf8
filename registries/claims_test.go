package registries_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/registries"
)

func (h *hub) problems(id federation.ClusterID) string {
	var all []string
	for p := range h.Latest().Problems(id) {
		all = append(all, p.Code+" "+p.Field)
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

func (h *hub) wantIdentity(t *testing.T, id federation.ClusterID, uid string) {
	t.Helper()
	if c, ok := h.Latest().Cluster(id); !ok || c.Identity.UID != uid {
		t.Fatalf("cluster %s is %+v (%v), want that of %s", id, c, ok, uid)
	}
}

// TestClaimsFirstSourceHasTheID: whatever the order in which sources name one
// ID, the first by rank has it and the others are shown; when it lets go, the
// next one takes over without a gap.
func TestClaimsFirstSourceHasTheID(t *testing.T) {
	for seed := range uint64(6) {
		synctest.Test(t, func(t *testing.T) {
			h := start(t, "")
			defer h.stop()
			claims := registries.NewClaims(h.Supervisor)
			var sources []*registries.Source
			for i, name := range []string{"the config file", "the folder", "objects"} {
				sources = append(sources, claims.Source(i, name, name))
			}
			for _, i := range rand.New(rand.NewPCG(seed, 0)).Perm(len(sources)) {
				sources[i].Attach(cluster("c1", fmt.Sprint(i), says(full(byte(i+1), 5))))
				synctest.Wait()
			}
			h.wantIdentity(t, "c1", "uid-1")
			if got, want := h.problems("c1"), "DUPLICATE_CLUSTER_ID objects; DUPLICATE_CLUSTER_ID the folder"; got != want {
				t.Errorf("problems %q, want %q", got, want)
			}
			if holder, _, ok := claims.Holder("c1"); !ok || holder != "the config file" {
				t.Errorf("%q (%v) has the ID", holder, ok)
			}
			before := len(h.history.snapshots())
			sources[0].Detach("c1")
			synctest.Wait()
			h.wantIdentity(t, "c1", "uid-2")
			if got, want := h.problems("c1"), "DUPLICATE_CLUSTER_ID objects"; got != want {
				t.Errorf("problems %q, want %q", got, want)
			}
			for _, s := range h.history.snapshots()[before:] {
				if s.CountServices() != 5 {
					t.Errorf("version %d has %d services", s.Version(), s.CountServices())
				}
			}
			sources[2].Detach("c1")
			sources[2].Detach("c1")
			if got := h.problems("c1"); got != "" {
				t.Errorf("problems %q stay", got)
			}
			sources[1].Detach("c1")
			if _, ok := h.Latest().Cluster("c1"); ok {
				t.Error("the cluster stays after its last source let go")
			}
		})
	}
}

// TestClaimsRefusedFirstSourceKeepsTheID: a source that comes first and names a
// cluster that cannot be attached has the ID all the same.
func TestClaimsRefusedFirstSourceKeepsTheID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, "")
		defer h.stop()
		claims := registries.NewClaims(h.Supervisor)
		folder, objects := claims.Source(1, "the folder", ""), claims.Source(2, "objects", "")
		folder.Refuse("c1", federation.ClusterSpec{Provider: federation.Mock}, "no kubeconfig")
		objects.Attach(cluster("c1", "", says(full(1, 5))))
		synctest.Wait()
		h.wantPhase(t, "c1", federation.Failed)
		h.wantServices(t, 0)
		folder.Detach("c1")
		synctest.Wait()
		h.wantPhase(t, "c1", federation.Ready)
		h.wantServices(t, 5)
	})
}

// TestF04ForgetRemovesWhatADetachLeftOnDisk: the saved state of a cluster that
// was detached while the process was ending goes at the next start, and no other.
func TestF04ForgetRemovesWhatADetachLeftOnDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	owned := func(id, owner string) registries.Cluster {
		c := cluster(id, "", says(full(1, 5)))
		c.Owner = owner
		return c
	}
	synctest.Test(t, func(t *testing.T) {
		h := start(t, dir, owned("c1", "object"), owned("c2", "object"), owned("c3", "folder"), owned("c4", ""))
		after(time.Second)
		h.stop()
	})
	if err := os.WriteFile(filepath.Join(dir, "foreign.json"), []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		h := start(t, dir, owned("c2", "object"))
		h.Forget("object")
		h.stop()
	})
	var left []string
	files, err := os.ReadDir(dir)
	for _, f := range files {
		left = append(left, f.Name())
	}
	if got, want := strings.Join(left, " "), "c2.Mock.db c3.Mock.db c4.Mock.db foreign.json"; got != want || err != nil {
		t.Errorf("the folder holds %q (%v), want %q", got, err, want)
	}
}

func TestLeavingIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, "", cluster("c1", "", says(full(1, 5))))
		defer h.stop()
		h.Leaving("c1", true)
		h.wantPhase(t, "c1", federation.Detaching)
		h.wantServices(t, 5)
		h.Leaving("c1", false)
		h.wantPhase(t, "c1", federation.Ready)
	})
}
