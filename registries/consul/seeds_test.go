package consul

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/registries/registrytest"
)

// until waits for a condition that no edit announces.
func until(t *testing.T, what string, fulfilled func() bool) {
	t.Helper()
	testbed.WaitFor(t, registrytest.Patience, what, func() error {
		if fulfilled() {
			return nil
		}
		return fmt.Errorf("not yet")
	})
}

// has reports whether the service has an endpoint with the label.
func (r *rig) has(name, label, value string) func(registrytest.View) bool {
	return func(v registrytest.View) bool {
		s := v.Services[r.Key(name)]
		return s != nil && len(s.Endpoints) > 0 && s.Endpoints[0].Labels[label] == value
	}
}

// never fails the test when a service is taken away.
func never(r *rig, names ...string) func(registrytest.View, federation.Edit) string {
	return func(v registrytest.View, _ federation.Edit) string {
		for _, name := range names {
			if s := v.Services[r.Key(name)]; s == nil || len(s.Endpoints) == 0 {
				return name + " was taken away"
			}
		}
		return ""
	}
}

func withTags(tags ...string) map[string]any { return map[string]any{"Tags": tags} }

func TestSeed54AnUnchangedCatalogueCostsOneLongPollEach(t *testing.T) {
	t.Parallel()
	const services, wait, rounds = 20, time.Second, 6
	r := startRig(t, testbed.ConsulOptions{}, Options{Wait: wait})
	r.fill("web", services)
	recorder, _ := registrytest.Start(t, r)
	recorder.WaitPhase(t, federation.Ready)
	edits, began, before := recorder.View().Edits, time.Now(), r.asked(CountHealth, CountServices)
	until(t, "some rounds of long polls", func() bool {
		return r.asked(CountHealth, CountServices)-before >= rounds*(services+1)
	})
	asked := r.asked(CountHealth, CountServices) - before
	if allowed := (int(time.Since(began)/wait) + 1) * (services + 1); asked > allowed {
		t.Errorf("%d requests in %v for %d services that did not change, want at most %d", asked, time.Since(began), services, allowed)
	}
	if n := r.proxy.Accepted(); n > services+readers+reserved {
		t.Errorf("%d connections were opened for %d services: they are not shared", n, services)
	}
	if after := recorder.View().Edits; after != edits && !stopped(recorder) {
		t.Errorf("%d edits about a catalogue that did not change", after-edits)
	}
}

func TestSeed55OneOfAHundredChanges(t *testing.T) {
	t.Parallel()
	r := startRig(t, testbed.ConsulOptions{}, Options{})
	r.fill("web", 100)
	recorder, _ := registrytest.Start(t, r)
	recorder.WaitPhase(t, federation.Ready)
	r.register("web-042", "web-042", "10.20.0.43", 8080, withTags("version|v2"))
	recorder.Wait(t, "the changed service", r.has("web-042", "version", "v2"))
	r.register("web-007", "web-007", "10.20.0.8", 8080, withTags("version|v3"))
	recorder.Wait(t, "the change after it", r.has("web-007", "version", "v3"))
	edits := recorder.Edits()
	if stopped(recorder) {
		return // both changes may have come with all the rest
	}
	if len(edits) != 3 {
		t.Fatalf("%d edits, want the full one and one for each change", len(edits))
	}
	e := edits[1]
	if e.Services.Full || len(e.Services.Set) != 1 || len(e.Services.Gone) != 0 || e.Services.Set[r.Key("web-042")] == nil ||
		len(e.Workloads.Set) != 1 || len(e.Problems.Set) != 0 {
		t.Errorf("the edit of one change is %+v", e)
	}
}

func TestSeed56ConsulDown(t *testing.T) {
	t.Parallel()
	r := startRig(t, testbed.ConsulOptions{Persistent: true}, Options{})
	r.fill("web", 3)
	recorder, _ := registrytest.Start(t, r)
	recorder.WaitPhase(t, federation.Ready)
	recorder.Always(never(r, "web-000", "web-001", "web-002"))
	edits := recorder.View().Edits
	r.Kill()
	recorder.WaitPhase(t, federation.Stale)
	began, before := time.Now(), r.asked(CountCanary)
	until(t, "six attempts", func() bool { return r.asked(CountCanary)-before >= 6 })
	if took := time.Since(began); took < 4*time.Second {
		t.Errorf("six attempts in %v: reconnects are not backed off", took)
	}
	if r.asked(CountHealth) > 3*6 {
		t.Errorf("%d reads of services: a Consul that is down is asked for more than itself", r.asked(CountHealth))
	}
	v := recorder.View()
	if v.Edits != edits || len(v.Services) != 3 {
		t.Errorf("%d edits, %d services while Consul is down; want what was known", v.Edits-edits, len(v.Services))
	}
	r.Restart()
	recorder.WaitPhase(t, federation.Ready)
}

func TestSeed57TagsReordered(t *testing.T) {
	t.Parallel()
	r := startRig(t, testbed.ConsulOptions{}, Options{})
	r.register("web", "web", "10.0.0.1", 80, withTags("version|v1", "zone=z", "canary"))
	recorder, _ := registrytest.Start(t, r)
	recorder.WaitPhase(t, federation.Ready)
	until(t, "the long poll to be open", func() bool { return r.asked(CountHealth) >= 2 })
	polls := r.asked(CountHealth)
	r.register("web", "web", "10.0.0.1", 80, withTags("canary", "version|v1", "zone=z"))
	until(t, "the poll after the reordered tags", func() bool { return r.asked(CountHealth) > polls })
	r.register("web", "web", "10.0.0.1", 80, withTags("canary", "version|v2", "zone=z"))
	recorder.Wait(t, "a change of a tag", r.has("web", "version", "v2"))
	if n := recorder.View().Edits; n != 2 && !stopped(recorder) {
		t.Errorf("%d edits, want the full one and that of the changed tag", n)
	}
}

func TestRequestBudgetOfAHundredChanges(t *testing.T) {
	t.Parallel()
	const services, changes, budget = 140, 100, 350
	r := startRig(t, testbed.ConsulOptions{}, Options{})
	r.fill("web", services)
	opened := time.Now()
	recorder, _ := registrytest.Start(t, r)
	recorder.WaitPhase(t, federation.Ready)
	until(t, "the long polls to be open", func() bool { return r.asked(CountHealth, CountServices) >= 2*services+2 })
	began, before := time.Now(), r.asked(CountHealth, CountServices)
	// On a busy machine polls that change nothing end meanwhile: the first ones 30 s after they were opened.
	rounds := func(after int) int { return max(int(time.Since(opened)/(30*time.Second))-after, 0) * (services + 1) }
	for i := range changes {
		name := numbered("web", i)
		r.register(name, name, fmt.Sprintf("10.20.0.%d", i+1), 8080, withTags(fmt.Sprintf("version|v%d", i)))
		recorder.Wait(t, name, r.has(name, "version", fmt.Sprintf("v%d", i)))
	}
	asked := r.asked(CountHealth, CountServices) - before
	if asked > changes+changes/10+rounds(0) && !stopped(recorder) {
		t.Errorf("%d changes cost %d requests in %v; one each was wanted", changes, asked, time.Since(began))
	}
	until(t, "the end of one wait", func() bool { return time.Since(began) > 31*time.Second })
	asked = r.asked(CountHealth, CountServices) - before
	t.Logf("%d services and %d changes within one wait: %d requests, canary and token %d", services, changes, asked,
		r.asked(CountCanary, CountToken))
	if asked > budget+rounds(1) && !stopped(recorder) {
		t.Errorf("%d services and %d changes cost %d requests within one wait, want at most %d", services, changes, asked, budget)
	}
}

func TestF58SnapshotRestored(t *testing.T) {
	t.Parallel()
	restored(t, snapshotRestored)
}

func snapshotRestored(t *testing.T) (ended bool) {
	t.Helper()
	r := startRig(t, testbed.ConsulOptions{Persistent: true}, Options{Wait: 2 * time.Second})
	r.fill("old", 3)
	saved := r.Do(http.MethodGet, "/v1/snapshot", nil)
	if saved.Err != nil || saved.Status != http.StatusOK {
		t.Fatalf("saving a snapshot: %d %v", saved.Status, saved.Err)
	}
	r.fill("new", 30)
	recorder, _ := registrytest.Start(t, r)
	recorder.WaitPhase(t, federation.Ready)
	recorder.Always(never(r, "old-000", "old-001", "old-002"))
	if !r.restore(t, saved.Body) {
		return false
	}
	recorder.Wait(t, "the restored catalogue", func(v registrytest.View) bool { return len(v.Services) == 3 })
	edits := recorder.Edits()
	if last := edits[len(edits)-1]; !last.Services.Full {
		t.Errorf("a restore that takes 30 of 33 services away came as %+v, want a full edit that the hub can hold", last)
	}
	return true
}
