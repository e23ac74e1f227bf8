package registries_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/registries"
	"isthmus.dev/isthmus/registries/registrytest"
)

// identified is a registry that follows the cluster of that number, and is held
// when it is to expect a different one.
func identified(n *byte, services *int) func(federation.ClusterIdentity) (registries.Registry, error) {
	return func(known federation.ClusterIdentity) (registries.Registry, error) {
		return registrytest.Fake(func(ctx context.Context, to registries.Sink) error {
			e := registrytest.Full(*n, *services)
			if known.UID != "" && known.UID != e.Identity.UID {
				to.Status(federation.RegistryStatus{Phase: federation.Held, Message: "another cluster answers"})
				<-ctx.Done()
				return nil
			}
			return registrytest.Says(e)(ctx, to)
		}), nil
	}
}

// TestF47AnotherClusterIsFrozenUntilConfirmed: what was known stays, however
// much the other cluster lacks, and after the confirmation it is the other one.
func TestF47AnotherClusterIsFrozenUntilConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		number, services := byte(1), 30
		c := registries.Cluster{
			ID: "c1", Spec: federation.ClusterSpec{Provider: federation.Mock}, Fingerprint: "a",
			Open: identified(&number, &services),
		}
		h := start(t, "", c)
		defer h.stop()
		if err := h.Confirm("c1"); !errors.Is(err, registries.ErrNothingHeld) {
			t.Errorf("a confirmation of what is not held: %v", err)
		}
		number, services = 3, 3
		c.Fingerprint = "b"
		h.Attach(c)
		synctest.Wait()
		h.wantServices(t, 30)
		h.wantIdentity(t, "c1", "uid-1")
		if s := h.status(t, "c1"); s.Message == "" {
			t.Error("the message does not mention the newer configuration that is not in use")
		}
		if !h.Held("c1") {
			t.Error("nothing is held")
		}
		if err := h.Confirm("c1"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if h.Held("c1") {
			t.Error("what was confirmed is held still")
		}
		h.wantIdentity(t, "c1", "uid-3")
		h.wantServices(t, 3)
		if s := h.wantPhase(t, "c1", federation.Ready); s.Message != "" {
			t.Errorf("the message %q stays", s.Message)
		}
	})
}

// TestF47ConfirmedAfterARestart: the cluster was exchanged while nobody ran.
func TestF47ConfirmedAfterARestart(t *testing.T) {
	dir, _ := savedBy(t, registrytest.Full(1, 30))
	synctest.Test(t, func(t *testing.T) {
		number, services := byte(2), 3
		h := start(t, dir, registries.Cluster{
			ID: "c1", Spec: federation.ClusterSpec{Provider: federation.Mock},
			Open: identified(&number, &services),
		})
		defer h.stop()
		h.wantPhase(t, "c1", federation.Held)
		h.wantServices(t, 30)
		if err := h.Confirm("c1"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		h.wantPhase(t, "c1", federation.Ready)
		h.wantIdentity(t, "c1", "uid-2")
		h.wantServices(t, 3)
	})
}
