package registries_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/registries"
	"isthmus.dev/isthmus/registries/registrytest"
)

func TestSeed17NotSyncedUntilEveryRegistryIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		slow := registrytest.Fake(func(ctx context.Context, to registries.Sink) error {
			<-answer
			return registrytest.Says(registrytest.Full(2, 1))(ctx, to)
		})
		h := start(t, "", cluster("c1", "", registrytest.Says(registrytest.Full(1, 1))), cluster("c2", "", slow))
		defer h.stop()
		if h.Latest().HasSynced() || h.isReady() {
			t.Error("the hub says that it has synced while c2 has not")
		}
		h.wantPhase(t, "c2", federation.Syncing)
		close(answer)
		synctest.Wait()
		if !h.Latest().HasSynced() || !h.isReady() {
			t.Error("the hub does not say that it has synced")
		}
		h.wantPhase(t, "c2", federation.Ready)
	})
}

func TestSeed18SecondAttachOfAnIDRunsNothingAndIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := 0
		counted := registrytest.Fake(func(ctx context.Context, to registries.Sink) error {
			started++
			return registrytest.Says(registrytest.Full(1, 1))(ctx, to)
		})
		h := start(t, "", cluster("c1", "same", counted))
		defer h.stop()
		h.Attach(cluster("c1", "same", counted))
		h.Problem("c1", "duplicate", &federation.Problem{
			Code: "DUPLICATE_CLUSTER_ID", Object: "cluster c1", Field: "clusters[1].id",
			Message: "this ID is taken",
		})
		synctest.Wait()
		if started != 1 {
			t.Errorf("%d registries were started, want 1", started)
		}
		for p := range h.Latest().Problems("c1") {
			if p.Field == "clusters[1].id" {
				h.Detach("c1")
				for p := range h.Latest().Problems("c1") {
					t.Errorf("problem %v outlives its cluster", p)
				}
				return
			}
		}
		t.Error("the duplicate is not shown at its cluster")
	})
}

func TestSeed25ClusterAttachedWhileReadersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, "", cluster("c1", "", registrytest.Says(registrytest.Full(1, 1))))
		defer h.stop()
		reader := h.Latest()
		h.Attach(cluster("c2", "", registrytest.Says(set2(registrytest.Full(2, 0), "late"))))
		synctest.Wait()
		<-reader.Superseded()
		changes := h.Latest().ChangesSince(reader.Version())
		if len(changes.Services) != 1 || changes.Services[0].Key != registrytest.Key("late") {
			t.Errorf("the reader sees %v, want the late service", changes.Services)
		}
	})
}

func set2(e federation.Edit, name string) federation.Edit {
	e.Services.Set[registrytest.Key(name)] = registrytest.Shard(2, 1)
	return e
}

func TestSeed26DetachRemovesVIPAndEndpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var late registries.Sink
		talks := registrytest.Fake(func(ctx context.Context, to registries.Sink) error {
			late = to
			return registrytest.Says(registrytest.Full(2, 1))(ctx, to)
		})
		h := start(t, "", cluster("c1", "", registrytest.Says(registrytest.Full(1, 1))), cluster("c2", "", talks))
		defer h.stop()
		before := h.Latest()
		if svc, _ := before.Service(registrytest.Key("s0")); len(svc.ClusterVIPs) != 2 {
			t.Fatalf("VIPs of both clusters are wanted, there are %v", svc.ClusterVIPs)
		}
		h.Detach("c2")
		<-before.Superseded()
		late.Update(registrytest.Full(2, 3))
		late.Status(federation.RegistryStatus{Phase: federation.Failed, Message: "late"})
		synctest.Wait()
		svc, ok := h.Latest().Service(registrytest.Key("s0"))
		if !ok || len(svc.ClusterVIPs) != 1 || svc.ClusterVIPs.Of("c1") == nil || svc.CountEndpoints() != 2 {
			t.Errorf("s0 is %+v, want what c1 says alone", svc)
		}
		if c, ok := h.Latest().Cluster("c2"); ok {
			t.Errorf("c2 is still shown: %+v", c)
		}
		h.wantServices(t, 1)
	})
}

func TestF05PanicFailsItsClusterAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		panics := registrytest.Fake(func(_ context.Context, to registries.Sink) error {
			to.Update(registrytest.Full(2, 3))
			panic("a hidden-token in a panic")
		})
		h := start(t, "", cluster("c1", "", registrytest.Says(registrytest.Full(1, 1))),
			cluster("c2", "", panics, panics, registrytest.Says(registrytest.Full(2, 3))))
		defer h.stop()
		s := h.wantPhase(t, "c2", federation.Failed)
		if !strings.Contains(s.Message, "panicked") || strings.Contains(s.Message, "hidden-token") {
			t.Errorf("the message is %q", s.Message)
		}
		h.wantPhase(t, "c1", federation.Ready)
		h.wantServices(t, 3)
		after(20 * time.Second)
		h.wantPhase(t, "c2", federation.Ready)
		if !strings.Contains(h.log.String(), "supervisor_test.go") {
			t.Error("the log has no stack")
		}
	})
}

func TestFailedRegistryIsTriedAgainWithBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var starts []time.Time
		broken := registrytest.Fake(func(context.Context, registries.Sink) error {
			starts = append(starts, time.Now())
			return fails("reading the token: permission denied")(nil, nil)
		})
		h := start(t, "", cluster("c1", "", broken))
		s := h.wantPhase(t, "c1", federation.Failed)
		if s.Message != "reading the token: permission denied" || s.Since.IsZero() {
			t.Errorf("status is %+v", s)
		}
		if !h.isReady() {
			t.Error("a definite refusal still delays the start")
		}
		versions := h.Latest().Version()
		after(10 * time.Minute)
		h.stop()
		if len(starts) < 8 || len(starts) > 25 {
			t.Errorf("%d starts in 10 min, want one in about a minute at last", len(starts))
		}
		if first, last := starts[1].Sub(starts[0]), starts[len(starts)-1].Sub(starts[len(starts)-2]); first > 2*time.Second ||
			last < 20*time.Second {
			t.Errorf("pauses from %v to %v do not back off", first, last)
		}
		if now := h.Latest().Version(); now != versions {
			t.Errorf("%d versions were published for the same status", now-versions)
		}
	})
}

func TestStatusKeepsItsBeginningAndRepeatsPublishNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sink registries.Sink
		talks := registrytest.Fake(func(ctx context.Context, to registries.Sink) error {
			sink = to
			return registrytest.Says(registrytest.Full(1, 1))(ctx, to)
		})
		h := start(t, "", cluster("c1", "", talks))
		defer h.stop()
		after(time.Minute)
		lost := time.Now()
		sink.Status(federation.RegistryStatus{Phase: federation.Stale, Message: "connection refused"})
		version := h.Latest().Version()
		after(time.Minute)
		sink.Status(federation.RegistryStatus{Phase: federation.Stale, Message: "connection refused"})
		if h.Latest().Version() != version {
			t.Error("the same status was published twice")
		}
		sink.Status(federation.RegistryStatus{Phase: federation.Stale, Message: "timed out"})
		if s := h.wantPhase(t, "c1", federation.Stale); !s.Since.Equal(lost) || s.Message != "timed out" {
			t.Errorf("status is %+v, want STALE since %v", s, lost)
		}
		sink.Status(federation.RegistryStatus{Phase: federation.Ready})
		if s := h.wantPhase(t, "c1", federation.Ready); !s.Since.Equal(time.Now()) || s.Message != "" {
			t.Errorf("status is %+v, want READY since now", s)
		}
		event, sync := h.Activity("c1")
		if want := lost.Add(-time.Minute); !event.Equal(want) || !sync.Equal(want) {
			t.Errorf("activity is %v and %v, want %v", event, sync, want)
		}
	})
}

func TestLoneReadyIsNotBelievedBeforeTheFirstList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hasty := registrytest.Fake(func(ctx context.Context, to registries.Sink) error {
			to.Status(federation.RegistryStatus{Phase: federation.Ready})
			return silent(ctx, to)
		})
		h := start(t, "", cluster("c1", "", hasty))
		defer h.stop()
		h.wantPhase(t, "c1", federation.Syncing)
		after(9 * time.Second)
		if h.isReady() {
			t.Error("the start did not wait for the first list")
		}
		after(time.Second)
		if !h.isReady() {
			t.Error("the start waits longer than 10 s")
		}
	})
}
