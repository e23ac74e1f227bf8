package consul

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/registries/registrytest"
)

// endpoints is how many a service has.
func (r *rig) endpoints(v registrytest.View, name string) int {
	if s := v.Services[r.Key(name)]; s != nil {
		return len(s.Endpoints)
	}
	return 0
}

// problemOf reports whether there is a problem of the service that says that.
func problemOf(v registrytest.View, name, says string) bool {
	for _, p := range v.Problems {
		if p.Code == codeUnreadable && p.Object == "Service "+name && strings.Contains(p.Message, says) {
			return true
		}
	}
	return false
}

// TestR84AServiceThatIsRefusedStopsNoOther: something between the hub and Consul refuses one service, and Consul proves to be in
// order. The service stays as it was and is reported, all others are followed. Where most are refused, the cluster is STALE.
func TestR84AServiceThatIsRefusedStopsNoOther(t *testing.T) {
	t.Parallel()
	r, _, _, _ := startTokenRig(t, "hub", time.Second)
	way, address := startFaulty(t, r)
	r.options.Address = address
	for i, name := range []string{"web", "db", "api"} {
		r.register(name, name+"-1", fmt.Sprintf("10.0.0.%d", i+1), 80)
	}
	recorder, _ := registrytest.Start(t, r)
	recorder.WaitPhase(t, federation.Ready)
	recorder.Always(never(r, "web", "db", "api"))
	for i, status := range []int{http.StatusForbidden, http.StatusFound, http.StatusUnauthorized} {
		way.answer(status, "web")
		says := fmt.Sprintf("consul answers %d", status)
		recorder.Wait(t, "the problem of the service", func(v registrytest.View) bool { return problemOf(v, "web", says) })
		r.register("web", fmt.Sprintf("web-1%d", i), fmt.Sprintf("10.0.1.%d", i), 80)
		r.register("db", fmt.Sprintf("db-1%d", i), fmt.Sprintf("10.0.2.%d", i), 80)
		v := recorder.Wait(t, "a change of another service", func(v registrytest.View) bool { return r.endpoints(v, "db") == i+2 })
		if !strings.Contains(v.Status.Message, "web ("+says) || r.endpoints(v, "web") != i+1 {
			t.Errorf("web has %d endpoints and the status says %q, want %d and the service", r.endpoints(v, "web"), v.Status.Message, i+1)
		}
		way.answer(0)
		recorder.Wait(t, "the service to heal", func(v registrytest.View) bool { return r.endpoints(v, "web") == i+2 && len(v.Problems) == 0 })
	}
	for _, s := range recorder.Statuses() {
		if s.Phase != federation.Syncing && s.Phase != federation.Ready && !isUnanswered(s) {
			t.Errorf("one service brought %s: %s", s.Phase, s.Message)
		}
	}
	way.answer(http.StatusForbidden, "web", "db")
	staleBy(t, recorder, "consul answers 403")
	r.register("api", "api-2", "10.0.3.1", 80)
	recorder.Wait(t, "the service that is not refused", func(v registrytest.View) bool { return r.endpoints(v, "api") == 2 })
	way.answer(0)
	recorder.Wait(t, "all of it", func(v registrytest.View) bool { return v.Status.Phase == federation.Ready && len(v.Problems) == 0 })
}

// TestR84AServiceThatIsRefusedDoesNotFailTheFirstSync: most of Consul is read and served at the start.
func TestR84AServiceThatIsRefusedDoesNotFailTheFirstSync(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusForbidden, http.StatusTooManyRequests} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			r := startRig(t, testbed.ConsulOptions{}, Options{})
			way, address := startFaulty(t, r)
			r.options.Address = address
			r.register("web", "web-1", "10.0.0.1", 80)
			r.register("db", "db-1", "10.0.0.2", 80)
			way.answer(status, "web")
			recorder, _ := registrytest.Start(t, r)
			v := recorder.WaitPhase(t, federation.Ready)
			if !problemOf(v, "web", fmt.Sprintf("consul answers %d", status)) || r.endpoints(v, "db") != 1 {
				t.Errorf("db has %d endpoints, and the problems are %v", r.endpoints(v, "db"), v.Problems)
			}
			way.answer(0)
			recorder.Wait(t, "the service", func(v registrytest.View) bool { return r.endpoints(v, "web") == 1 && len(v.Problems) == 0 })
		})
	}
}
