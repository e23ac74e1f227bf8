package graph_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/graph"
)

// known is the state of a client that carries out every event.
type known map[string]string

func (k known) take(t *testing.T, e event) {
	t.Helper()
	set := func(name, action, content string) {
		_, has := k[name]
		if has != (action != "CREATE") {
			t.Errorf("%s of %s, which the client has: %v", action, name, has)
		}
		k[name] = content
		if action == "DELETE" {
			delete(k, name)
		}
	}
	for _, c := range e.Services {
		set("service "+c.Service.Hostname, c.Action, fmt.Sprint(c.Service.Endpoints.TotalCount))
	}
	for _, c := range e.Clusters {
		set("cluster "+c.Cluster.ClusterID, c.Action, c.Cluster.Status.Phase)
	}
	for _, c := range e.ConfigObjects {
		set("object "+c.Object.Name, c.Action, *c.Object.Revision)
	}
}

// truth is what a whole reading of the snapshot shows.
func truth(s *federation.Snapshot) known {
	k := known{}
	for svc := range s.Services().All() {
		k["service "+string(svc.Key.Hostname)] = fmt.Sprint(svc.CountEndpoints())
	}
	for c := range s.Clusters() {
		k["cluster "+string(c.ID)] = string(c.Status.Phase)
	}
	for o := range s.Objects().All() {
		k["object "+o.Key.Name] = fmt.Sprint(o.Revision)
	}
	return k
}

func randomEdit(r *rand.Rand, revision int64) federation.Edit {
	service := key(fmt.Sprintf("s%d", r.IntN(6)), "shop")
	object := routeKey("shop", fmt.Sprintf("r%d", r.IntN(4)))
	extra := federation.ClusterID(fmt.Sprintf("x%d", r.IntN(3)))
	return []func() federation.Edit{
		func() federation.Edit { return offer(r.IntN(4), service) },
		func() federation.Edit { return withdraw(service) },
		func() federation.Edit { return clusters(extra) },
		func() federation.Edit { return detach(extra) },
		func() federation.Edit { return configure(revision, object) },
		func() federation.Edit { return unconfigure(object) },
	}[r.IntN(6)]()
}

// TestResumedChangesLeaveNoGap cuts a subscription at random moments and goes on
// behind the last event that was taken: what the client knows is what is there.
func TestResumedChangesLeaveNoGap(t *testing.T) {
	for seed := range uint64(40) {
		bubble(t, []federation.Edit{clusters("c1"), offer(1, key("s0", "shop"))}, func(t *testing.T, l live, s subscriber) {
			r := rand.New(rand.NewPCG(seed, 1))
			changes, has := s.changes("", nil), known{}
			state, _ := changes.whole()
			has.take(t, state)
			cursor := *state.Cursor
			for step := range int64(60) {
				l.publish(randomEdit(r, step+2))
				switch r.IntN(5) {
				case 0: // cut, perhaps with an event on its way
					changes.stop()
					synctest.Wait()
					if changes.waiting != nil {
						<-changes.waiting
					}
					changes = s.changes(cursor, nil)
				case 1, 2:
					if changes.silent() {
						continue
					}
					e := changes.read()
					if e.Resync {
						t.Fatalf("seed %d step %d: a resync of a known cursor", seed, step)
					}
					has.take(t, e)
					cursor = *e.Cursor
				}
			}
			for !changes.silent() {
				has.take(t, changes.read())
			}
			if want := truth(l.Latest()); !maps.Equal(has, want) {
				t.Errorf("seed %d: the client has %v, there is %v", seed, has, want)
			}
		})
	}
}

// TestCursorOfAnotherHub is taken by a hub that has the same content, whatever
// came there before; with a hub of another content or store the client starts again.
func TestCursorOfAnotherHub(t *testing.T) {
	a, cart := key("a", "shop"), routeKey("shop", "cart")
	edits := []federation.Edit{clusters("c1"), offer(1, a), configure(3, cart)}
	for name, c := range map[string]struct {
		edits  []federation.Edit
		epoch  string
		filter map[string]any
		resync bool
	}{
		"same content": {edits: edits},
		"in other steps": {edits: []federation.Edit{
			offer(2, a, key("b", "shop")), configure(3, cart), clusters("c1"),
			withdraw(key("b", "shop")), offer(1, a),
		}},
		"other endpoints":    {edits: []federation.Edit{clusters("c1"), offer(2, a), configure(3, cart)}, resync: true},
		"other revision":     {edits: []federation.Edit{clusters("c1"), offer(1, a), configure(4, cart)}, resync: true},
		"one cluster more":   {edits: append(slices.Clone(edits), clusters("c2")), resync: true},
		"one object less":    {edits: edits[:2], resync: true},
		"other store":        {edits: edits, epoch: "other", resync: true},
		"other filter":       {edits: edits, filter: map[string]any{"namespace": "shop"}, resync: true},
		"same by the filter": {edits: edits, filter: map[string]any{"kinds": []string{"SERVICE", "CLUSTER", "CONFIG_OBJECT", "NETWORK"}}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, edits, func(t *testing.T, _ live, s subscriber) {
				state, _ := s.changes("", nil).whole()
				l := newLive(c.edits...)
				other := newSubscriber(t, graph.Options{Snapshots: l, Config: graph.Config{Epoch: c.epoch}})
				changes := other.changes(*state.Cursor, c.filter)
				if got := !changes.silent(); got != c.resync {
					t.Fatalf("a resync: %v", got)
				}
				if c.resync {
					changes.whole()
				}
				l.publish(offer(3, a))
				if e := changes.read(); e.Resync || e.text() != "UPDATE a.example.com 3" {
					t.Errorf("then comes %+v", e)
				}
			})
		})
	}
}

func TestForeignCursorsBeginAnew(t *testing.T) {
	bubble(t, []federation.Edit{clusters("c1")}, func(t *testing.T, _ live, s subscriber) {
		state, _ := s.changes("", nil).whole()
		own := *state.Cursor
		other := "B" // cursors of hubs begin at random
		if own[:1] == other {
			other = "C"
		}
		for _, cursor := range []string{"x", "ä", "\x00", own[:len(own)-2], own + "AA", other + own[1:]} {
			if again, _ := s.changes(cursor, nil).whole(); len(again.Clusters) != 1 {
				t.Errorf("%q gets %+v", cursor, again)
			}
		}
	})
}

// TestCursorStaysWhileNothingFollowedChanges has a quiet filter in a busy mesh.
func TestCursorStaysWhileNothingFollowedChanges(t *testing.T) {
	bubble(t, []federation.Edit{clusters("c1")}, func(t *testing.T, l live, s subscriber) {
		filter := map[string]any{"kinds": []string{"CLUSTER"}}
		quiet, busy := s.changes("", filter), s.changes("", nil)
		state, _ := quiet.whole()
		busy.whole()
		quiet.await()
		for i := range 1100 {
			l.publish(offer(i%3+1, key("a", "shop")))
			busy.read()
		}
		waitUntilIdle()
		quiet.stop()
		<-quiet.waiting
		quiet.waiting = nil
		l.publish(detach("c1"))
		if e := s.changes(*state.Cursor, filter).read(); e.Resync || e.text() != "DELETE c1 PENDING" {
			t.Errorf("after a return comes %+v", e)
		}
	})
}

// TestTooFarBehindBeginsAnew has more changes than the mesh remembers between two
// readings.
func TestTooFarBehindBeginsAnew(t *testing.T) {
	bubble(t, []federation.Edit{clusters("c1")}, func(t *testing.T, l live, s subscriber) {
		changes := s.changes("", nil)
		state, _ := changes.whole()
		changes.stop()
		var many []federation.ObjectKey
		for i := range 20_000 {
			many = append(many, routeKey("shop", fmt.Sprintf("r%05d", i)))
		}
		l.publish(configure(1, many...))
		l.publish(unconfigure(many...))
		l.publish(configure(2, many[:3]...))
		if whole, _ := s.changes(*state.Cursor, nil).whole(); len(whole.ConfigObjects) != 3 || len(whole.Clusters) != 1 {
			t.Errorf("got %d objects and %d clusters", len(whole.ConfigObjects), len(whole.Clusters))
		}
	})
}
