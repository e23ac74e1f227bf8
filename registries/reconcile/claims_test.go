package reconcile

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"isthmus.dev/isthmus/federation"
)

// sources are the three of operators: each sets or withdraws what it says about c1.
func sources(id federation.ClusterID) (set []func(*Inputs, Claim), drop []func(*Inputs)) {
	set = []func(*Inputs, Claim){
		func(in *Inputs, c Claim) { in.Config = []Claim{c} },
		func(in *Inputs, c Claim) { in.Folder[id] = c },
		func(in *Inputs, c Claim) { in.Objects[id] = c },
	}
	drop = []func(*Inputs){
		func(in *Inputs) { in.Config = nil },
		func(in *Inputs) { delete(in.Folder, id) },
		func(in *Inputs) { delete(in.Objects, id) },
	}
	return set, drop
}

// TestClaimsFirstSourceHasTheID: whatever the order in which sources name one
// ID, the first by rank has it and the others are shown; when it lets go, the
// next one takes over without a gap.
func TestClaimsFirstSourceHasTheID(t *testing.T) {
	for seed := range uint64(6) {
		synctest.Test(t, func(t *testing.T) {
			h := start(t, Start{})
			defer h.stop()
			set, drop := sources("c1")
			for _, i := range rand.New(rand.NewPCG(seed, 0)).Perm(len(set)) {
				h.say(func(in *Inputs) { set[i](in, cluster("c1", fmt.Sprint(i), byte(i+1), 5)) })
			}
			h.wantIdentity(t, "c1", "uid-1")
			if got, want := h.problems("c1"), "DUPLICATE_CLUSTER_ID --kubeconfig-dir; DUPLICATE_CLUSTER_ID a Cluster object"; got != want {
				t.Errorf("problems %q, want %q", got, want)
			}
			if holder, _, ok := h.Reconciler.Latest().Holder("c1"); !ok || holder != "the config file" {
				t.Errorf("%q (%v) has the ID", holder, ok)
			}
			before := len(h.history.Since(0))
			h.say(drop[0])
			h.wantIdentity(t, "c1", "uid-2")
			if got, want := h.problems("c1"), "DUPLICATE_CLUSTER_ID a Cluster object"; got != want {
				t.Errorf("problems %q, want %q", got, want)
			}
			for _, s := range h.history.Since(before) {
				if s.Services().Len() != 5 {
					t.Errorf("version %d has %d services", s.Version(), s.Services().Len())
				}
			}
			h.say(drop[2])
			h.say(drop[2])
			if got := h.problems("c1"); got != "" {
				t.Errorf("problems %q stay", got)
			}
			h.say(drop[1])
			if _, ok := h.Aggregate.Latest().Cluster("c1"); ok {
				t.Error("the cluster stays after its last source let go")
			}
		})
	}
}

// TestClaimsRefusedFirstSourceKeepsTheID: a source that comes first and names a
// cluster that cannot be attached has the ID all the same.
func TestClaimsRefusedFirstSourceKeepsTheID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, Start{})
		defer h.stop()
		set, drop := sources("c1")
		h.say(func(in *Inputs) {
			set[1](in, Refuse("c1", federation.ClusterSpec{Provider: federation.Kubernetes}, "no kubeconfig"))
		})
		h.say(func(in *Inputs) { set[2](in, cluster("c1", "", 1, 5)) })
		h.wantPhase(t, "c1", federation.Failed)
		if n := h.Aggregate.Latest().Services().Len(); n != 0 {
			t.Errorf("%d services of a cluster that has not the ID", n)
		}
		h.say(drop[1])
		h.wantPhase(t, "c1", federation.Ready)
		if n := h.Aggregate.Latest().Services().Len(); n != 5 {
			t.Errorf("%d services, want 5", n)
		}
	})
}

// An alias names one cluster, whatever the order in which clusters claim it;
// the others keep theirs, with a problem. When it is free the next one has it.
func TestR48AnAliasStandsForOneCluster(t *testing.T) {
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		synctest.Test(t, func(t *testing.T) {
			h := start(t, Start{})
			defer h.stop()
			attach := func(i int) {
				id := []federation.ClusterID{"c1", "c2"}[i]
				c := cluster(string(id), "1", byte(i+1), 2)
				c.Spec.Aliases = federation.NewAliases([]string{"Kubernetes", "gke_" + string(id), "c1"})
				set, _ := sources(id)
				h.say(func(in *Inputs) { set[2*i](in, c) })
			}
			named := func(name, want federation.ClusterID) {
				t.Helper()
				if got := h.Aggregate.Latest().ClusterNamed(name); got != want {
					t.Errorf("%s names %s, want %s", name, got, want)
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
			if holder, _ := h.Reconciler.Latest().AliasHolder("Kubernetes"); holder != "c1" {
				t.Errorf("%s has the alias", holder)
			}
			_, drop := sources("c1")
			h.say(drop[0])
			named("Kubernetes", "c2")
			if got := h.problems("c2"); got != "" {
				t.Errorf("alone it has the problems %q", got)
			}
		})
	}
}

// TestSecretsYieldToOperators: an operator who takes an ID from a Secret is
// trusted, whatever cluster is behind it; the other way round nothing changes.
func TestSecretsYieldToOperators(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, Start{Config: []Claim{cluster("c0", "c0", 9, 1)}})
		defer h.stop()
		secret := func(in *Inputs) {
			in.Remotes[holder("c0")] = Remotes{
				Asked: true, Read: true,
				Named: []Entry{{Object: "ns/s", Key: "c1", Claim: cluster("c1", "a", 1, 5).proven()}},
			}
		}
		h.say(secret)
		h.wantIdentity(t, "c1", "uid-1")
		h.say(func(in *Inputs) { in.Objects["c1"] = cluster("c1", "b", 2, 5).proven() })
		h.wantIdentity(t, "c1", "uid-2")
		if name, yields, ok := h.Reconciler.Latest().Holder("c1"); !ok || yields || name != "a Cluster object" {
			t.Errorf("%q (%v, %v) has the ID", name, yields, ok)
		}
		h.say(func(in *Inputs) { delete(in.Remotes, holder("c0")) })
		h.say(secret)
		<-time.NewTimer(time.Minute).C
		synctest.Wait()
		h.wantIdentity(t, "c1", "uid-2")
		h.wantPhase(t, "c1", federation.Ready)
	})
}

// TestF56AttachAndDetachFromManySides has many sources attach, replace, refuse and
// detach one cluster at the same time: the last attach wins, and the last
// detach leaves nothing.
func TestF56AttachAndDetachFromManySides(t *testing.T) {
	h := start(t, Start{})
	defer h.stop()
	spec := federation.ClusterSpec{Provider: federation.Kubernetes}
	set := func(c Claim) func() {
		return func() { <-h.post(func(in *Inputs) { in.Objects["c1"] = c }) }
	}
	detach := func() { <-h.post(func(in *Inputs) { delete(in.Objects, "c1") }) }
	acts := []func(){
		set(cluster("c1", "a", 1, 3)), set(cluster("c1", "b", 2, 3)), set(Refuse("c1", spec, "is refused")), detach,
		func() {
			<-h.post(func(in *Inputs) { in.Remotes[holder("c1")] = Remotes{Asked: true, Unreadable: "x"} })
		},
	}
	for round := range 200 {
		var together sync.WaitGroup
		for i := range 2 * len(acts) {
			together.Go(acts[i%len(acts)])
		}
		together.Wait()
		set(cluster("c1", "last", 3, 7))()
		if !eventually(h, func(s *federation.Snapshot) bool {
			c, ok := s.Cluster("c1")
			return ok && c.Spec == spec && c.Identity.UID == "uid-3" && c.Status.Phase == federation.Ready
		}) {
			c, ok := h.Aggregate.Latest().Cluster("c1")
			t.Fatalf("round %d: the cluster that was attached last is %+v (%v)", round, c, ok)
		}
		detach()
		if _, ok := h.Aggregate.Latest().Cluster("c1"); ok || h.Aggregate.Latest().Services().Len() > 0 {
			t.Fatalf("round %d: something is left of a detached cluster", round)
		}
	}
}

// eventually waits until a snapshot is as wanted, at most a minute.
func eventually(h *hub, want func(*federation.Snapshot) bool) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		s := h.Aggregate.Latest()
		if want(s) {
			return true
		}
		select {
		case <-s.Superseded():
		case <-ctx.Done():
			return false
		}
	}
}
