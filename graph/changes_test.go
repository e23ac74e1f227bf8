package graph_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/graph"
)

// waitUntilIdle waits until every goroutine of the bubble waits, twice the pace later.
func waitUntilIdle() {
	<-time.NewTimer(2 * graph.DefaultPace).C
	synctest.Wait()
}

// clusters attaches clusters.
func clusters(ids ...federation.ClusterID) federation.Edit {
	set := map[federation.ClusterID]federation.ClusterSpec{}
	for _, id := range ids {
		set[id] = federation.ClusterSpec{Provider: federation.Kubernetes}
	}
	return federation.Edit{Clusters: federation.Delta[federation.ClusterID, federation.ClusterSpec]{Set: set}}
}

func detach(ids ...federation.ClusterID) federation.Edit {
	return federation.Edit{Clusters: federation.Delta[federation.ClusterID, federation.ClusterSpec]{Gone: ids}}
}

func key(name, namespace string) federation.ServiceKey {
	return federation.ServiceKey{Hostname: federation.Hostname(name + ".example.com"), Namespace: namespace}
}

// offer sets services of the first cluster with that many endpoints each.
func offer(endpoints int, keys ...federation.ServiceKey) federation.Edit {
	set := map[federation.ServiceKey]*federation.Shard{}
	for _, k := range keys {
		set[k] = shard("10.1.0.1/32")
		for i := range endpoints {
			set[k].Endpoints = append(set[k].Endpoints, endpoint("n1", fmt.Sprintf("10.0.0.%d", i+1)))
		}
	}
	return federation.Edit{Source: first, Services: federation.Delta[federation.ServiceKey, *federation.Shard]{Set: set}}
}

func withdraw(keys ...federation.ServiceKey) federation.Edit {
	return federation.Edit{Source: first, Services: federation.Delta[federation.ServiceKey, *federation.Shard]{Gone: keys}}
}

// configure sets an object of the store at a revision.
func configure(revision int64, keys ...federation.ObjectKey) federation.Edit {
	e := federation.Edit{Source: federation.ShardKey{Cluster: "hub", Provider: federation.External}}
	e.Objects.Set = map[federation.ObjectKey]*federation.Object{}
	for _, k := range keys {
		e.Objects.Set[k] = &federation.Object{Key: k, Revision: revision, Digest: fmt.Sprint(revision)}
	}
	return e
}

func unconfigure(keys ...federation.ObjectKey) federation.Edit {
	e := configure(0)
	e.Objects.Set, e.Objects.Gone = nil, keys
	return e
}

// live publishes edits, each of which may be of any source.
type live struct {
	*federation.Aggregate
	writers map[federation.ShardKey]*federation.Writer
}

func newLive(edits ...federation.Edit) live {
	l := live{federation.NewAggregate(nil), map[federation.ShardKey]*federation.Writer{}}
	for _, e := range edits {
		l.publish(e)
	}
	return l
}

func (l live) publish(e federation.Edit) {
	if e.Source == (federation.ShardKey{}) {
		e.Source = federation.ShardKey{Provider: federation.Operator}
	}
	if l.writers[e.Source] == nil {
		l.writers[e.Source] = l.Open(e.Source)
	}
	l.writers[e.Source].Update(e)
}

// bubble runs a test in fake time, with a hub over l.
func bubble(t *testing.T, edits []federation.Edit, body func(*testing.T, live, subscriber)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := newLive(edits...)
		body(t, l, newSubscriber(t, graph.Options{Snapshots: l}))
	})
}

func TestChangesBeginWithTheWholePicture(t *testing.T) {
	var keys []federation.ServiceKey
	for i := range 1100 {
		keys = append(keys, key(fmt.Sprintf("s%04d", i), "shop"))
	}
	for _, services := range []int{0, 1, 497, 498, 1100} {
		bubble(t, []federation.Edit{clusters("c1"), offer(1, keys[:services]...), configure(1, routeKey("shop", "cart"))},
			func(t *testing.T, l live, s subscriber) {
				for _, after := range []string{"", "x"} {
					whole, pages := s.changes(after, nil).whole()
					if len(whole.Services) != services || len(whole.Clusters) != 1 || len(whole.ConfigObjects) != 1 {
						t.Errorf("%d services, %d clusters, %d objects of %d, 1, 1", len(whole.Services), len(whole.Clusters),
							len(whole.ConfigObjects), services)
					}
					const others = 3 // a cluster, its network, an object
					if want := (services + others + 499) / 500; pages != want {
						t.Errorf("%d things come in %d chunks, not %d", services+others, pages, want)
					}
					if whole.SnapshotVersion != fmt.Sprint(l.Latest().Version()) {
						t.Errorf("the picture is of version %s", whole.SnapshotVersion)
					}
				}
			})
	}
}

func TestChangesSayWhatHappened(t *testing.T) {
	a, b := key("a", "shop"), key("b", "shop")
	cart := routeKey("shop", "cart")
	bubble(t, []federation.Edit{clusters("c1"), offer(1, a)}, func(t *testing.T, l live, s subscriber) {
		changes := s.changes("", nil)
		changes.whole()
		for _, step := range []struct {
			edit federation.Edit
			want string
		}{
			{offer(2, a), "UPDATE a.example.com 2"},
			{offer(3, b), "CREATE b.example.com 3"},
			{withdraw(a), "DELETE a.example.com 2"},
			{clusters("c2"), "CREATE c2 PENDING"},
			{federation.Edit{Source: second, Status: &federation.RegistryStatus{Phase: federation.Ready}}, "UPDATE c2 READY"},
			{detach("c2"), "DELETE c2 READY"},
			{configure(7, cart), "CREATE cart 7"},
			{configure(8, cart), "UPDATE cart 8"},
			{unconfigure(cart), "DELETE cart 8"},
		} {
			l.publish(step.edit)
			e := changes.read()
			if got := e.text(); got != step.want || e.Resync || e.Cursor == nil || e.SnapshotVersion != fmt.Sprint(l.Latest().Version()) {
				t.Errorf("%q comes as %+v, want %s", got, e, step.want)
			}
		}
		if !changes.silent() {
			t.Error("there is an event without a change")
		}
	})
}

// text is what the only thing of an event is.
func (e event) text() string {
	text := ""
	for _, c := range e.Services {
		text += fmt.Sprintf("%s %s %d", c.Action, c.Service.Hostname, c.Service.Endpoints.TotalCount)
	}
	for _, c := range e.Clusters {
		text += fmt.Sprintf("%s %s %s", c.Action, c.Cluster.ClusterID, c.Cluster.Status.Phase)
	}
	for _, c := range e.ConfigObjects {
		text += fmt.Sprintf("%s %s %s", c.Action, c.Object.Name, *c.Object.Revision)
	}
	return text
}

func TestSlowReaderGetsOneLargerChange(t *testing.T) {
	a, b := key("a", "shop"), key("b", "shop")
	bubble(t, []federation.Edit{clusters("c1"), offer(1, a)}, func(t *testing.T, l live, s subscriber) {
		changes := s.changes("", nil)
		changes.whole()
		l.publish(offer(2, a)) // on its way, while the reader does not read
		waitUntilIdle()
		for i := range 20 {
			l.publish(offer(3+i, a, b))
		}
		l.publish(clusters("c2"))
		if got := changes.read().text(); got != "UPDATE a.example.com 2" {
			t.Errorf("first comes %s", got)
		}
		if e := changes.read(); len(e.Services) != 2 || len(e.Clusters) != 1 || e.Services[0].Service.Endpoints.TotalCount != 22 {
			t.Errorf("then comes %+v", e)
		}
		if !changes.silent() {
			t.Error("and more")
		}
	})
}

func TestEventsKeepTheirPace(t *testing.T) {
	bubble(t, []federation.Edit{clusters("c1")}, func(t *testing.T, l live, s subscriber) {
		changes := s.changes("", nil)
		changes.whole()
		l.publish(offer(1, key("a", "shop")))
		changes.read()
		began := time.Now()
		l.publish(offer(2, key("a", "shop")))
		changes.read()
		if waited := time.Since(began); waited != graph.DefaultPace {
			t.Errorf("the next event comes after %v", waited)
		}
	})
}

func TestSubscriptionEndsWithItsContext(t *testing.T) {
	bubble(t, []federation.Edit{clusters("c1")}, func(t *testing.T, l live, s subscriber) {
		idle, unread := s.changes("", nil), s.changes("", nil)
		idle.whole()
		idle.await()
		l.publish(clusters("c2"))
		waitUntilIdle()
		for _, stream := range []*stream{idle, unread} {
			stream.stop()
			synctest.Wait()
			if stream.waiting != nil {
				<-stream.waiting
			}
		}
	})
}

func TestChangesAreFiltered(t *testing.T) {
	edits := []federation.Edit{
		clusters("c1", "c2"), offer(1, key("web", "shop"), key("web", "edge"), key("cart", "shop")),
		configure(1, routeKey("shop", "r"), routeKey("edge", "r")),
		{Source: second, Services: federation.Delta[federation.ServiceKey,
			*federation.Shard]{Set: map[federation.ServiceKey]*federation.Shard{key("far", "shop"): shard("10.2.0.1/32")}}},
	}
	for name, c := range map[string]struct {
		filter                      map[string]any
		services, clusters, objects int
	}{
		"nothing":   {map[string]any{}, 4, 2, 2},
		"null":      {map[string]any{"kinds": nil, "clusterID": nil, "namespace": nil, "hostnameContains": nil}, 4, 2, 2},
		"kind":      {map[string]any{"kinds": []string{"SERVICE"}}, 4, 0, 0},
		"kinds":     {map[string]any{"kinds": []string{"CLUSTER", "CONFIG_OBJECT"}}, 0, 2, 2},
		"no kind":   {map[string]any{"kinds": []string{}}, 0, 0, 0},
		"namespace": {map[string]any{"namespace": "shop"}, 3, 2, 1},
		"cluster":   {map[string]any{"clusterID": "c2"}, 1, 1, 2},
		"hostname":  {map[string]any{"hostnameContains": "WEB"}, 2, 2, 2},
		"all":       {map[string]any{"hostnameContains": "web", "namespace": "edge", "clusterID": "c1", "kinds": []string{"SERVICE"}}, 1, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, edits, func(t *testing.T, _ live, s subscriber) {
				whole, _ := s.changes("", c.filter).whole()
				if len(whole.Services) != c.services || len(whole.Clusters) != c.clusters || len(whole.ConfigObjects) != c.objects {
					t.Errorf("got %+v", whole)
				}
			})
		})
	}
}

// TestThingsComeIntoAndGoOutOfTheFilter follows the services of the second
// cluster, to which the first one's is added and of which it is taken.
func TestThingsComeIntoAndGoOutOfTheFilter(t *testing.T) {
	of := func(keys map[federation.ServiceKey]*federation.Shard, gone ...federation.ServiceKey) federation.Edit {
		return federation.Edit{Source: second, Services: federation.Delta[federation.ServiceKey, *federation.Shard]{Set: keys, Gone: gone}}
	}
	a := key("a", "shop")
	bubble(t, []federation.Edit{clusters("c1", "c2"), offer(1, a)}, func(t *testing.T, l live, s subscriber) {
		changes := s.changes("", map[string]any{"clusterID": "c2", "kinds": []string{"SERVICE"}})
		if whole, _ := changes.whole(); whole.size() != 0 {
			t.Errorf("at first: %+v", whole)
		}
		l.publish(offer(2, a))
		if !changes.silent() {
			t.Error("a change outside of the filter is sent")
		}
		l.publish(of(map[federation.ServiceKey]*federation.Shard{a: shard("10.2.0.1/32", endpoint("n2", "10.0.1.1"))}))
		if got := changes.read().text(); got != "CREATE a.example.com 3" {
			t.Errorf("coming in is %s", got)
		}
		l.publish(of(nil, a))
		if got := changes.read().text(); got != "DELETE a.example.com 3" {
			t.Errorf("going out is %s", got)
		}
	})
}

// TestR44ClustersAreToldWithTheirCounts to a reader that asks for them. One that comes
// back gets the counts that changed meanwhile, on another hub, too.
func TestR44ClustersAreToldWithTheirCounts(t *testing.T) {
	const counts = `subscription($after: String, $filter: ChangeFilter) {changes(after: $after, filter: $filter) {cursor resync clusters {action cluster {clusterID services {totalCount} endpoints {totalCount}}}}}`
	of := func(s *stream) string {
		var event struct {
			Changes struct {
				Cursor   *string
				Clusters []struct {
					Action  string
					Cluster struct {
						ClusterID           string
						Services, Endpoints struct{ TotalCount int }
					}
				}
			}
		}
		s.await()
		answer := <-s.waiting
		s.waiting = nil
		if err := json.Unmarshal(answer.Data, &event); err != nil || len(answer.Errors) > 0 {
			t.Fatal(err, answer.Errors)
		}
		told := *event.Changes.Cursor + ":"
		for _, c := range event.Changes.Clusters {
			told += fmt.Sprintf(" %s %s %d %d", c.Action, c.Cluster.ClusterID, c.Cluster.Services.TotalCount, c.Cluster.Endpoints.TotalCount)
		}
		return told
	}
	bubble(t, []federation.Edit{clusters("c1"), offer(1, key("a", "shop"))}, func(t *testing.T, l live, s subscriber) {
		s.text = counts
		filter := map[string]any{"kinds": []string{"CLUSTER", "COUNTS"}}
		changes := s.changes("", filter)
		_, first, _ := strings.Cut(of(changes), ": ")
		l.publish(offer(2, key("a", "shop"), key("b", "shop")))
		cursor, then, _ := strings.Cut(of(changes), ": ")
		if first != "CREATE c1 1 1" || then != "UPDATE c1 2 4" {
			t.Errorf("it gets %q, then %q", first, then)
		}
		changes.stop()
		l.publish(offer(3, key("a", "shop")))
		for name, hub := range map[string]subscriber{"the same hub": s, "another hub": newSubscriber(t, graph.Options{Snapshots: l})} {
			hub.text = counts
			again := hub.changes(cursor, filter)
			if _, missed, _ := strings.Cut(of(again), ": "); !strings.HasSuffix(missed, "c1 2 5") {
				t.Errorf("%s tells who comes back %q", name, missed)
			}
			again.stop()
		}
	})
}

// TestR44ObjectsAreFollowedByKind: objects of other kinds are not told.
func TestR44ObjectsAreFollowedByKind(t *testing.T) {
	rule := routeKey("shop", "cart")
	rule.Kind = "DestinationRule"
	bubble(t, []federation.Edit{clusters("c1"), configure(1, rule, routeKey("shop", "cart"))}, func(t *testing.T, l live, s subscriber) {
		changes := s.changes("", map[string]any{"kinds": []string{"CONFIG_OBJECT"}, "objectGroup": rule.Group, "objectKind": rule.Kind})
		if whole, _ := changes.whole(); len(whole.ConfigObjects) != 1 || whole.ConfigObjects[0].Object.Kind != rule.Kind {
			t.Errorf("it begins with %+v", whole.ConfigObjects)
		}
		l.publish(configure(2, routeKey("shop", "cart")))
		if !changes.silent() {
			t.Error("an object of another kind is sent")
		}
		l.publish(configure(3, rule))
		if got := changes.read().text(); got != "UPDATE cart 3" {
			t.Errorf("then comes %s", got)
		}
	})
}
