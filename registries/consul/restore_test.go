package consul

import (
	"net/http"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/registries/registrytest"
)

// healthIs sets the health of an instance by a check of the catalog.
func (r *rig) healthIs(service, id, status string) {
	r.Put("/v1/catalog/register", map[string]any{
		"Node": "n1", "Address": "10.20.30.99", "SkipNodeUpdate": true,
		"Check": map[string]any{"CheckID": "check-" + id, "Name": "check", "ServiceID": id, "ServiceName": service, "Status": status},
	})
}

// TestR83ASnapshotRestoreIsFollowed: a long poll with an index from before waits in
// vain, here for ten minutes.
func TestR83ASnapshotRestoreIsFollowed(t *testing.T) {
	t.Parallel()
	restored(t, snapshotRestoreIsFollowed)
}

func snapshotRestoreIsFollowed(t *testing.T) (ended bool) {
	t.Helper()
	r := startRig(t, testbed.ConsulOptions{}, Options{Wait: 10 * time.Minute})
	r.register("db", "db-1", "10.0.0.1", 5432)
	r.register("db", "db-2", "10.0.0.2", 5432)
	r.healthIs("db", "db-1", "passing")
	saved := r.Do(http.MethodGet, "/v1/snapshot", nil)
	if saved.Err != nil || saved.Status != http.StatusOK {
		t.Fatalf("saving a snapshot: %d %v", saved.Status, saved.Err)
	}
	recorder, _ := registrytest.Start(t, r)
	// is waits for the endpoints of db, by address, and that there is no other service.
	is := func(what string, want map[string]federation.Health) {
		t.Helper()
		recorder.Wait(t, what, func(v registrytest.View) bool {
			s := v.Services[r.Key("db")]
			if s == nil || len(s.Endpoints) != len(want) || v.Services[r.Key("late")] != nil {
				return false
			}
			for _, e := range s.Endpoints {
				if want[e.Address.String()] != e.Health {
					return false
				}
			}
			return true
		})
	}
	before := map[string]federation.Health{"10.0.0.1": federation.Healthy, "10.0.0.2": federation.Healthy}
	is("what was saved", before)

	r.deregister("db-1")
	r.register("late", "late-1", "10.0.0.3", 80)
	recorder.Wait(t, "the instances after the snapshot", func(v registrytest.View) bool {
		s := v.Services[r.Key("db")]
		return v.Services[r.Key("late")] != nil && s != nil && len(s.Endpoints) == 1
	})
	if !r.restore(t, saved.Body) {
		return false
	}
	is("what was restored", before)

	r.healthIs("db", "db-1", "critical")
	is("a critical check", map[string]federation.Health{"10.0.0.1": federation.Unhealthy, "10.0.0.2": federation.Healthy})
	proofs := r.asked(CountCanary)
	until(t, "the proof after it", func() bool { return r.asked(CountCanary) > proofs+2*len(tables) })
	if !r.restore(t, saved.Body) {
		return false
	}
	is("the health that was restored", before)
	for _, s := range recorder.Statuses() {
		if (s.Phase == federation.Stale || s.Phase == federation.Held) && !isUnanswered(s) {
			t.Errorf("a restore brought %s: %s", s.Phase, s.Message)
		}
	}
	return true
}
