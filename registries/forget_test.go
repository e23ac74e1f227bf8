package registries_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/registries"
	"isthmus.dev/isthmus/registries/registrytest"
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

// TestF04ForgetRemovesWhatADetachLeftOnDisk: the saved state of a cluster that
// was detached while the process was ending goes at the next start, and no other.
func TestF04ForgetRemovesWhatADetachLeftOnDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	owned := func(id, owner string) registries.Cluster {
		c := cluster(id, "", registrytest.Says(registrytest.Full(1, 5)))
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
		synctest.Wait()
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

// TestR95ADetachAtTheEndRemovesTheState: the state of a cluster that is detached when the hub stops is not on disk.
func TestR95ADetachAtTheEndRemovesTheState(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		h := start(t, dir, cluster("c1", "", registrytest.Says(registrytest.Full(1, 5))))
		after(time.Second)
		if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
			t.Fatalf("the folder holds %v, %v", files, err)
		}
		h.Detach("c1")
		h.stop()
	})
	if files, err := os.ReadDir(dir); err != nil || len(files) != 0 {
		t.Errorf("the folder holds %v, %v", files, err)
	}
}

func TestLeavingIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, "", cluster("c1", "", registrytest.Says(registrytest.Full(1, 5))))
		defer h.stop()
		h.Leaving("c1", true)
		h.wantPhase(t, "c1", federation.Detaching)
		h.wantServices(t, 5)
		h.Leaving("c1", false)
		h.wantPhase(t, "c1", federation.Ready)
	})
}
