package registries_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/registries"
	"isthmus.dev/isthmus/registries/registrytest"
)

func kubernetes(id string, n byte, rank int) registries.Cluster {
	c := cluster(id, id, registrytest.Says(registrytest.Full(n, 5)))
	c.Spec.Provider, c.Identified, c.Rank = federation.Kubernetes, true, rank
	return c
}

func (h *hub) wantServed(t *testing.T, id federation.ClusterID, endpoints int) {
	t.Helper()
	if c, ok := h.Latest().Cluster(id); !ok || c.Endpoints != endpoints {
		t.Errorf("of %s %+v endpoints are offered (%v), want %d", id, c, ok, endpoints)
	}
}

// TestBK16OneClusterUnderSeveralIDs: whatever the order in which several sources
// name one cluster, one ID has it: the first by source, then by name. The others
// offer nothing and say so; when the first one goes, the next has it.
func TestBK16OneClusterUnderSeveralIDs(t *testing.T) {
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			h := start(t, dir)
			defer h.stop()
			operator, secret := 0, 3
			attach := []func(){
				func() { h.Attach(kubernetes("m", 1, operator)) },
				func() { h.Attach(kubernetes("n", 1, operator)) },
				func() { h.Attach(kubernetes("a", 1, secret)) },
				func() { h.Attach(kubernetes("b", 2, secret)) },
			}
			for _, i := range rand.New(rand.NewPCG(seed, 0)).Perm(len(attach)) {
				attach[i]()
				synctest.Wait()
			}
			h.wantPhase(t, "m", federation.Ready)
			h.wantPhase(t, "b", federation.Ready)
			h.wantServed(t, "m", 10)
			h.wantServed(t, "b", 10)
			for _, id := range []federation.ClusterID{"n", "a"} {
				if s := h.wantPhase(t, id, federation.Failed); !strings.Contains(s.Message, "attached already, as m") {
					t.Errorf("%s says %q", id, s.Message)
				}
				h.wantServed(t, id, 0)
				if got := h.problems(id); got != "DUPLICATE_CLUSTER " {
					t.Errorf("problems of %s: %q", id, got)
				}
			}
			after(2 * time.Second)
			if data, err := os.ReadFile(filepath.Join(dir, "n.Kubernetes.db")); err != nil || bytes.Contains(data, []byte("s0.shop")) {
				t.Error("what is not served is on disk")
			}
			h.Detach("m")
			after(time.Minute)
			h.wantPhase(t, "n", federation.Ready)
			h.wantServed(t, "n", 10)
			if got := h.problems("n"); got != "" {
				t.Errorf("problems of n: %q", got)
			}
			h.wantPhase(t, "a", federation.Failed)
		})
	}
}
