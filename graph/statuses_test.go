package graph_test

import (
	"maps"
	"sync"
	"testing"
	"testing/synctest"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/graph"
)

// judge reports findings about objects while a test wants it to.
type judge struct {
	mu    sync.Mutex
	wrong map[federation.ObjectKey]bool
	asked map[federation.ObjectKey]int // how often
}

// questions returns how often it was asked about each object since the last call.
func (j *judge) questions() map[federation.ObjectKey]int {
	j.mu.Lock()
	defer j.mu.Unlock()
	asked := j.asked
	j.asked = map[federation.ObjectKey]int{}
	return asked
}

func (j *judge) set(key federation.ObjectKey, wrong bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.wrong[key] = wrong
}

func (j *judge) findings(_ *federation.Snapshot, _ *fleet.Value, key federation.ObjectKey) []apply.Finding {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.asked[key]++
	if !j.wrong[key] {
		return nil
	}
	return []apply.Finding{{Code: "UNUSED", Severity: apply.Warning, Message: "nobody asks for it", Key: key}}
}

// judged runs a test of a hub in fake time in which a judge
// reports the objects shop/cart and shop/other.
func judged(t *testing.T, body func(*testing.T, *judge, *fleet.Fleet, live, subscriber)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := newLive(clusters("c1"), configure(1, routeKey("shop", "cart"), routeKey("shop", "other")))
		j, f := &judge{wrong: map[federation.ObjectKey]bool{}, asked: map[federation.ObjectKey]int{}}, fleet.New()
		body(t, j, f, l, newSubscriber(t, graph.Options{Snapshots: l, Fleet: f, Config: graph.Config{Findings: j.findings}}))
	})
}

func (e event) statuses() (names []string) {
	for _, o := range e.ConfigObjects {
		names = append(names, o.Action+" "+o.Object.Name)
	}
	return names
}

func wantStatuses(t *testing.T, e event, want ...string) {
	t.Helper()
	if got := e.statuses(); len(got) != len(want) || len(want) > 0 && got[0] != want[0] || e.Cursor == nil {
		t.Errorf("the event has %v, want %v", got, want)
	}
}

// A reader of the feed learns when what is wrong with an object begins and ends, once
// each, and nothing of other objects; one that comes back gets what it missed.
func TestR24TheChangeFeedTellsOfFindings(t *testing.T) {
	judged(t, func(t *testing.T, j *judge, f *fleet.Fleet, l live, s subscriber) {
		cart := routeKey("shop", "cart")
		changes := s.changes("", nil)
		changes.whole()
		proxy := f.Connect(fleet.Proxy{NodeID: "a"})
		if !changes.silent() {
			t.Fatal("an event is sent though no status changed")
		}
		j.set(cart, true)
		proxy.Report(cds, fleet.Sync{State: fleet.Pending})
		began := changes.read()
		wantStatuses(t, began, "STATUS cart")
		j.set(cart, false)
		proxy.Report(cds, fleet.Sync{State: fleet.Synced})
		wantStatuses(t, changes.read(), "STATUS cart")
		changes.stop()
		missed := s.changes(*began.Cursor, nil)
		wantStatuses(t, missed.read(), "STATUS cart")
		if !missed.silent() {
			t.Error("it is sent twice")
		}
		missed.stop()
		missed = s.changes("", map[string]any{"kinds": []string{"CONFIG_OBJECT"}})
		missed.whole()
		proxy.Report(cds, fleet.Sync{State: fleet.Nacked})
		j.set(cart, true)
		if !missed.silent() {
			t.Error("a subscriber that does not follow statuses gets one")
		}
		l.publish(configure(2, cart))
		wantStatuses(t, missed.read(), "UPDATE cart")
	})
}

// TestR97TheChangeFeedTellsOfBuilds: a finding of a build is told, although neither the mesh
// nor a stream changes after it.
func TestR97TheChangeFeedTellsOfBuilds(t *testing.T) {
	judged(t, func(t *testing.T, j *judge, f *fleet.Fleet, _ live, s subscriber) {
		changes := s.changes("", nil)
		changes.whole()
		f.Built()
		if !changes.silent() {
			t.Fatal("an event is sent though no status changed")
		}
		j.set(routeKey("shop", "cart"), true)
		f.Built()
		wantStatuses(t, changes.read(), "STATUS cart")
		changes.stop()
	})
}

// TestR42OnlyFollowedStatusesAreLookedAt: what the change feed costs depends on the
// objects that somebody follows.
func TestR42OnlyFollowedStatusesAreLookedAt(t *testing.T) {
	judged(t, func(t *testing.T, j *judge, f *fleet.Fleet, l live, s subscriber) {
		want := func(what string, want map[federation.ObjectKey]int) {
			t.Helper()
			if got := j.questions(); !maps.Equal(got, want) {
				t.Errorf("%s: the judge was asked %v, want %v", what, got, want)
			}
		}
		mine, theirs := routeKey("mine", "a"), routeKey("theirs", "b")
		l.publish(configure(1, mine, theirs, routeKey("shop", "cart")))
		changes := s.changes("", map[string]any{"namespace": "mine"})
		changes.whole()
		want("when somebody begins to follow a namespace", map[federation.ObjectKey]int{mine: 1})
		proxy := f.Connect(fleet.Proxy{NodeID: "a"})
		if !changes.silent() {
			t.Error("an event is sent though no status changed")
		}
		want("when a proxy connects", map[federation.ObjectKey]int{mine: 1})
		other := s.changes("", map[string]any{"namespace": "theirs"})
		same := s.changes("", map[string]any{"namespace": "theirs"})
		other.whole()
		same.whole()
		if !changes.silent() || !other.silent() || !same.silent() {
			t.Error("an event is sent because another client starts to follow")
		}
		j.questions()
		j.set(theirs, true)
		j.set(mine, true)
		proxy.Report(cds, fleet.Sync{State: fleet.Pending})
		wantStatuses(t, changes.read(), "STATUS a")
		wantStatuses(t, other.read(), "STATUS b")
		wantStatuses(t, same.read(), "STATUS b")
		want("with three who follow two namespaces", map[federation.ObjectKey]int{mine: 1, theirs: 1})
		changes.stop()
		proxy.Report(cds, fleet.Sync{State: fleet.Synced})
		if !other.silent() {
			t.Error("an event is sent though no status changed")
		}
		want("when one has gone", map[federation.ObjectKey]int{theirs: 1})
	})
}

// Streams of proxies come, change and go; with them, every subscription starts again.
func TestR44TheChangeFeedTellsOfProxies(t *testing.T) {
	judged(t, func(t *testing.T, _ *judge, f *fleet.Fleet, _ live, s subscriber) {
		first := f.Connect(fleet.Proxy{NodeID: "a", Cluster: "c1"})
		s.text = `subscription($after: String, $filter: ChangeFilter) {changes(after: $after, filter: $filter) {cursor resync proxies {action proxy {nodeID}}}}`
		filter := map[string]any{"kinds": []string{"PROXY"}, "clusterID": "c1"}
		changes := s.changes("", filter)
		want := func(e event, want string) {
			t.Helper()
			if len(e.Proxies) != 1 || e.Proxies[0].Action+" "+e.Proxies[0].Proxy.NodeID != want {
				t.Errorf("the event has %+v, want %s", e.Proxies, want)
			}
		}
		state := changes.read()
		want(state, "CREATE a")
		f.Connect(fleet.Proxy{NodeID: "elsewhere", Cluster: "c2"})
		second := f.Connect(fleet.Proxy{NodeID: "b", Cluster: "c1"})
		want(changes.read(), "CREATE b")
		first.Report(cds, fleet.Sync{State: fleet.Pending})
		want(changes.read(), "UPDATE a")
		second.Close()
		want(changes.read(), "DELETE b")
		changes.stop()
		if again := s.changes(*state.Cursor, filter).read(); !again.Resync {
			t.Error("streams go on behind a cursor")
		}
	})
}
