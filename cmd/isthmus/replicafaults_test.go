package main

import (
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
)

// faultRounds and faultChanges make the run long in a soak.
var (
	faultRounds  = flag.Int("faultrounds", 1, "how often each fault of an etcd cluster is made")
	faultChanges = flag.Int("faultchanges", 8, "how many changes must succeed during a fault, and after it")
)

// memberFault is something that happens to a member of the store.
type memberFault struct {
	name       string
	leader     bool
	begin, end func(s *testbed.EtcdCluster, member int)
}

// elects reports whether nobody can write until there is another leader.
func (f memberFault) elects() bool { return f.leader && !strings.HasPrefix(f.name, "cut off") }

func memberFaults() []memberFault {
	var all []memberFault
	for _, leader := range []bool{false, true} {
		all = append(all,
			memberFault{
				"killed", leader,
				func(s *testbed.EtcdCluster, i int) { s.Members[i].Kill() },
				func(s *testbed.EtcdCluster, i int) { s.Members[i].Restart() },
			},
			memberFault{
				"frozen", leader,
				func(s *testbed.EtcdCluster, i int) { s.Members[i].Pause() },
				func(s *testbed.EtcdCluster, i int) { s.Members[i].Resume() },
			},
			memberFault{
				"cut off", leader,
				func(s *testbed.EtcdCluster, i int) { s.Links[i].Blackhole() },
				func(s *testbed.EtcdCluster, i int) { s.Links[i].Pass() },
			},
		)
	}
	return all
}

// quotaFor is room for what is written in so many rounds, in bytes. The writers do not pause, and
// all that they wrote stays as history; several rounds wait for the trouble of each fault.
func quotaFor(rounds int) int {
	if rounds == 1 {
		return 24 << 20
	}
	return rounds * 64 << 20
}

// TestR74TwoHubsOnThreeMembersKeepEveryChange: two hubs write through every fault of
// their store. No acknowledged change is lost, none is made twice, and both tell the
// same history.
func TestR74TwoHubsOnThreeMembersKeepEveryChange(t *testing.T) {
	t.Parallel()
	store := testbed.StartEtcdCluster(t, 3, fmt.Sprintf("--quota-backend-bytes=%d", quotaFor(*faultRounds)))
	key := filepath.Join(shortDir(t), "seal.key")
	var hubs []*hubUnderTest
	for range 2 {
		hubs = append(hubs, startProgramIn(t, shortDir(t), "--etcd-endpoints", strings.Join(store.Endpoints(), ","), "--seal-key", key).at())
	}
	w := startWriters(t, hubs)
	w.more(*faultChanges)
	for range *faultRounds {
		for i, fault := range memberFaults() {
			member := store.Follower()
			if fault.leader {
				member = store.Leader()
			}
			healthy, term := time.Now(), store.Term() // what was sent before may still fail through the fault before
			fault.begin(store, member)
			w.more(*faultChanges)
			for _, h := range hubs {
				if i == 0 || *faultRounds > 1 { // it takes some seconds each time
					h.awaitTrouble(t, "MEMBER_DOWN", store.Endpoints()[member])
				}
			}
			failed, last := w.refusals(healthy)
			if failed > 0 && !fault.elects() && store.Term() == term { // a busy machine has its members elect, too
				t.Errorf("%s, leader %v: %d changes failed: %s", fault.name, fault.leader, failed, last)
			}
			fault.end(store, member)
			w.healthy(store)
		}
		w.loseQuorum(store)
		w.fillUp(store)
	}
	w.stop()
	w.check()
}

// healthy waits until no hub has trouble, and changes go on.
func (w *writers) healthy(store *testbed.EtcdCluster) {
	w.t.Helper()
	store.Leader()
	for _, h := range w.hubs {
		h.awaitTrouble(w.t, "", "")
	}
	w.more(*faultChanges)
}

// loseQuorum kills two of three: changes are refused, everything else goes on.
func (w *writers) loseQuorum(store *testbed.EtcdCluster) {
	w.t.Helper()
	alive := store.Follower()
	for i, m := range store.Members {
		if i != alive {
			m.Kill()
		}
	}
	w.refused("UNAVAILABLE")
	for _, h := range w.hubs {
		h.awaitTrouble(w.t, "UNREACHABLE", "")
		h.wantReads(w.t)
	}
	for i, m := range store.Members {
		if i != alive {
			m.Restart()
		}
	}
	w.healthy(store)
}

// fillUp has etcd refuse every write.
func (w *writers) fillUp(store *testbed.EtcdCluster) {
	w.t.Helper()
	store.Fill()
	w.refused("STORAGE_FULL")
	for _, h := range w.hubs {
		h.awaitTrouble(w.t, "STORAGE_FULL", "")
		h.wantReads(w.t)
	}
	store.Free()
	w.healthy(store)
}

// awaitTrouble waits until the store has trouble of that code, of the object if it
// is given; "": until it has none.
func (h *hubUnderTest) awaitTrouble(t *testing.T, code, object string) {
	t.Helper()
	h.awaitSource(t, "ETCD", func(s shownSource) bool {
		for _, p := range s.Problems {
			if p.Code == code && (object == "" || p.Object == object) {
				return true
			}
		}
		return code == "" && len(s.Problems) == 0
	})
}

// wantReads wants answers from what the hub has in memory.
func (h *hubUnderTest) wantReads(t *testing.T) {
	t.Helper()
	var answer struct {
		ConfigObjects struct{ Nodes []struct{ Name string } }
	}
	if err := h.query(`{configObjects(first: 50) {nodes {name}}}`, &answer); err != nil || len(answer.ConfigObjects.Nodes) == 0 {
		t.Errorf("reading gives %+v, %v", answer, err)
	}
	if status, body, err := h.get("/readyz"); err != nil || status != 200 {
		t.Errorf("the hub answers %d %s, %v", status, body, err)
	}
}
