package etcd_test

import (
	"context"
	"errors"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/configtest"
	"isthmus.dev/isthmus/federation/config/etcd"
)

// TestR41FrozenStoreIsNotAsked: the first read of a frozen store finds out that it is
// frozen. From then on reads fail without being sent, until the store may be back. The
// history of an object is never read from the store.
func TestR41FrozenStoreIsNotAsked(t *testing.T) {
	members := cluster(t, 1)
	now, sent := time.Now(), 0
	o := calm()
	o.Now = func() time.Time { return now }
	c := reach(t, members[0].endpoint()).Config(o) // nobody follows it: only reads ask the store
	base := configtest.Must(t, c, configtest.Set(0, configtest.Object("a", 1)))
	c.FailAt("read", func() error { sent++; return nil })
	read := func(name string, wants error, reads int) {
		t.Helper()
		before := sent
		_, records := c.Records(t.Context(), 0, 1)
		_, objects := c.At(t.Context(), base)
		if !errors.Is(records, wants) || !errors.Is(objects, wants) || sent-before != reads {
			t.Errorf("%s: the errors are %v and %v after %d reads, want %v after %d", name, records, objects, sent-before, wants, reads)
		}
	}
	// A machine that stops for a moment makes it look frozen.
	waitUntil(t, "both reads to be answered", func() bool {
		before := sent
		_, records := c.Records(t.Context(), 0, 1)
		_, objects := c.At(t.Context(), base)
		now = now.Add(time.Minute)
		return records == nil && objects == nil && sent-before == 2
	})
	members[0].Pause()
	read("a store that is frozen", config.ErrUnavailable, 1)
	read("a store that is known to be frozen", config.ErrUnavailable, 0)
	before := sent
	if h, err := c.History(t.Context(), configtest.Key("a")); err != nil || len(h.Steps) != 1 || sent != before {
		t.Errorf("the history of an object in memory: %+v, %v, after %d reads", h, err, sent-before)
	}
	members[0].Resume()
	read("a store of which nobody knows that it is back", config.ErrUnavailable, 0)
	now = now.Add(time.Minute)
	waitUntil(t, "the store to be read", func() bool {
		_, err := c.Records(t.Context(), 0, 1)
		return err == nil
	})
}

// TestR71WatchLeavesMemberThatDoesNotAnswer: a watch that waits on a member that is
// frozen or cut off goes on at another one as soon as the member has left one question
// unanswered. No request is needed that happens to go to the same member.
func TestR71WatchLeavesMemberThatDoesNotAnswer(t *testing.T) {
	s := testbed.StartEtcdCluster(t, 3)
	store := reach(t, s.Endpoints()...)
	c := store.Config(etcd.ConfigOptions{})
	for _, way := range []struct {
		name       string
		begin, end func(member int)
	}{
		{"frozen", func(i int) { s.Members[i].Pause() }, func(i int) { s.Members[i].Resume() }},
		{"cut off", func(i int) { s.Links[i].Blackhole() }, func(i int) { s.Links[i].Pass() }},
	} {
		t.Run(way.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			silent := s.Follower()
			waitUntil(t, "a connection to the member", func() bool { return len(store.Links(s.Endpoints()[silent])) > 0 })
			watched := watches(ctx, t, store.Client())
			way.begin(silent)
			defer way.end(silent)
			before := store.Links(s.Endpoints()[silent])
			if err := c.AskMembers(ctx); err != nil {
				t.Fatal(err)
			}
			for _, l := range before {
				if !l.Closed() {
					t.Errorf("after a question without an answer, a connection to the member is kept")
				}
			}
			if _, err := reach(t, others(s, silent)...).Client().Put(ctx, "/seen", way.name); err != nil {
				t.Fatal(err)
			}
			for i, w := range watched {
				if answer := <-w; answer.Err() != nil || len(answer.Events) == 0 {
					t.Errorf("watch %d ends: %v", i, answer.Err())
				}
			}
		})
	}
}

// TestR71SilentConnectionOfASingleEndpointIsReplaced: behind the endpoint may be several
// members.
func TestR71SilentConnectionOfASingleEndpointIsReplaced(t *testing.T) {
	s := testbed.StartEtcdCluster(t, 1)
	store := reach(t, s.Endpoints()...)
	c := store.Config(etcd.ConfigOptions{Patience: time.Second})
	before := store.Links(s.Endpoints()[0])
	s.Links[0].Blackhole()
	if err := c.AskMembers(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(before) != 1 || !before[0].Closed() {
		t.Errorf("after a question without an answer, the connection is kept (of %d)", len(before))
	}
	s.Links[0].Pass()
	if _, err := store.Client().Get(t.Context(), "/seen"); err != nil {
		t.Error(err)
	}
}

// watches begins watches on streams of their own. The client uses the members in turn:
// one stream is on each.
func watches(ctx context.Context, t *testing.T, client *clientv3.Client) (all []clientv3.WatchChan) {
	t.Helper()
	for _, name := range []string{"a", "b", "c"} {
		own := metadata.AppendToOutgoingContext(ctx, "stream", name)
		w := client.Watch(own, "/seen", clientv3.WithCreatedNotify())
		if created := <-w; !created.Created {
			t.Fatalf("the watch is not created: %+v", created)
		}
		all = append(all, w)
	}
	return all
}

func others(s *testbed.EtcdCluster, without int) (endpoints []string) {
	for i, endpoint := range s.Endpoints() {
		if i != without {
			endpoints = append(endpoints, endpoint)
		}
	}
	return endpoints
}
