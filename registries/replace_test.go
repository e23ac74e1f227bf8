package registries_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/registries"
	"isthmus.dev/isthmus/registries/registrytest"
)

func TestReplacementShowsNoStateBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listed := make(chan struct{})
		slow := registrytest.Fake(func(ctx context.Context, to registries.Sink) error {
			to.Status(federation.RegistryStatus{Phase: federation.Syncing})
			<-listed
			return registrytest.Says(registrytest.Full(2, 30))(ctx, to)
		})
		ended := false
		old := registrytest.Fake(func(ctx context.Context, to registries.Sink) error {
			defer func() { ended = true }()
			return registrytest.Says(registrytest.Full(1, 30))(ctx, to)
		})
		h := start(t, "", cluster("c1", "old", old))
		defer h.stop()
		h.Attach(cluster("c1", "new", slow))
		after(time.Minute)
		if ended {
			t.Fatal("the old registry was stopped before the new one had read anything")
		}
		h.wantPhase(t, "c1", federation.Ready)
		first := len(h.history.Since(0))
		close(listed)
		synctest.Wait()
		after(6 * time.Second) // all endpoints differ: the new list needs a second proof
		if !ended {
			t.Error("the old registry still runs")
		}
		svc, _ := h.Latest().Service(registrytest.Key("s7"))
		if got := svc.ClusterVIPs.Of("c1")[0].String(); got != "10.2.0.1/32" {
			t.Errorf("the VIP is %s, want that of the new registry", got)
		}
		for _, s := range h.history.Since(0)[first-1:] {
			if s.Services().Len() != 30 {
				t.Errorf("version %d has %d services", s.Version(), s.Services().Len())
			}
			vips := map[string]bool{}
			for svc := range s.Services().All() {
				vips[svc.ClusterVIPs.Of("c1")[0].String()] = true
			}
			if len(vips) != 1 {
				t.Errorf("version %d mixes two registries: %v", s.Version(), vips)
			}
		}
	})
}

func TestF49WrongNewCredentialsLeaveTheOldOnesWorking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sink registries.Sink
		old := registrytest.Fake(func(ctx context.Context, to registries.Sink) error {
			sink = to
			return registrytest.Says(registrytest.Full(1, 3))(ctx, to)
		})
		h := start(t, "", cluster("c1", "old", old))
		defer h.stop()
		broken := cluster("c1", "broken", nil)
		broken.Open = func(federation.ClusterIdentity) (registries.Registry, error) {
			return nil, errors.New("the token has expired")
		}
		for name, attach := range map[string]func(){
			"Open": func() { h.Attach(broken) },
			"Run":  func() { h.Attach(cluster("c1", "refused", fails("401: the token is not known"))) },
			"Refuse": func() {
				h.Refuse("c1", federation.ClusterSpec{Provider: federation.Mock}, "users[0].user.exec: is refused")
			},
			"Status": func() {
				h.Attach(cluster("c1", "hangs", func(ctx context.Context, to registries.Sink) error {
					to.Status(federation.RegistryStatus{Phase: federation.Failed, Message: "403: may not list services"})
					return silent(ctx, to)
				}))
			},
		} {
			attach()
			after(3 * time.Minute)
			s := h.wantPhase(t, "c1", federation.Ready)
			if !strings.Contains(s.Message, "not in use") {
				t.Errorf("%s: the message is %q and does not say what is wrong", name, s.Message)
			}
			sink.Update(set("change-"+strings.ToLower(name), registrytest.Shard(1, 1)))
			if _, ok := h.Latest().Service(registrytest.Key("change-" + strings.ToLower(name))); !ok {
				t.Errorf("%s: the old registry does not count any more", name)
			}
		}
		h.Attach(cluster("c1", "old", old))
		synctest.Wait()
		if s := h.wantPhase(t, "c1", federation.Ready); s.Message != "" {
			t.Errorf("the message %q stays after the old configuration came back", s.Message)
		}
	})
}

func TestF50LateEditsOfAReplacedRegistryChangeNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		stubborn := registrytest.Fake(func(ctx context.Context, to registries.Sink) error {
			to.Update(registrytest.Full(1, 3))
			<-ctx.Done()
			<-release
			to.Update(registrytest.Full(1, 0))
			to.Update(gone("s1"))
			to.Status(federation.RegistryStatus{Phase: federation.Failed, Message: "closing"})
			return errors.New("closed")
		})
		h := start(t, "", cluster("c1", "old", stubborn))
		defer h.stop()
		h.Attach(cluster("c1", "new", registrytest.Says(registrytest.Full(2, 3))))
		synctest.Wait()
		version := h.Latest().Version()
		close(release)
		after(time.Minute)
		if h.Latest().Version() != version {
			t.Error("the replaced registry still changes something")
		}
		h.wantServices(t, 3)
		h.wantPhase(t, "c1", federation.Ready)
	})
}

func TestCorrectionOfANeverSyncedClusterStartsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, "", cluster("c1", "wrong", silent))
		defer h.stop()
		h.Attach(cluster("c1", "right", registrytest.Says(registrytest.Full(1, 2))))
		synctest.Wait()
		h.wantPhase(t, "c1", federation.Ready)
		h.wantServices(t, 2)
	})
}

func TestRefusedClusterIsShownAndJoinsLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, "")
		defer h.stop()
		h.Refuse("c9", federation.ClusterSpec{Provider: federation.Kubernetes}, "users[0].user.exec: is refused")
		synctest.Wait()
		if s := h.wantPhase(t, "c9", federation.Failed); s.Message != "users[0].user.exec: is refused" {
			t.Errorf("the message is %q", s.Message)
		}
		good := cluster("c9", "good", registrytest.Says(registrytest.Full(9, 1)))
		good.Spec.Provider = federation.Kubernetes
		h.Attach(good)
		synctest.Wait()
		h.wantPhase(t, "c9", federation.Ready)
		h.Attach(cluster("c9", "other kind", registrytest.Says(registrytest.Full(8, 1))))
		synctest.Wait()
		c, _ := h.Latest().Cluster("c9")
		if svc, _ := h.Latest().Service(registrytest.Key("s0")); c.Spec.Provider != federation.Mock || svc.CountEndpoints() != 2 {
			t.Errorf("after a change of the provider the cluster is %+v with %+v", c, svc)
		}
	})
}
