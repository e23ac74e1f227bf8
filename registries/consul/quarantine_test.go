package consul

import (
	"bytes"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/registries/registrytest"
)

// TestR12PoisonServices: a service over which the hub panics is set aside alone; what was known of it stays, a problem names it, and it
// heals when it changes.
func TestR12PoisonServices(t *testing.T) {
	t.Parallel()
	var on atomic.Bool
	on.Store(true)
	var log bytes.Buffer
	r := startRig(t, testbed.ConsulOptions{}, Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), poison: func(name string) {
		if strings.HasPrefix(name, "poison") || name == "later" && on.Load() {
			panic("a bug that " + name + " meets")
		}
	}})
	on.Store(false)
	r.register("web", "web-1", "10.0.0.1", 80)
	r.register("later", "later-1", "10.0.0.2", 80)
	r.register("poison", "poison-1", "10.0.0.3", 80)
	recorder, stop := registrytest.Start(t, r)
	recorder.WaitPhase(t, federation.Ready)
	faulty := func(v registrytest.View, name string) bool {
		for _, p := range v.Problems {
			if p.Code == codeFault && p.Object == "Service "+name && strings.Contains(p.Message, "a fault of the hub") {
				return true
			}
		}
		return false
	}
	endpoints := func(v registrytest.View, name string) int {
		if s := v.Services[r.Key(name)]; s != nil {
			return len(s.Endpoints)
		}
		return 0
	}
	recorder.Wait(t, "the services beside the poisoned one, and its problem", func(v registrytest.View) bool {
		return endpoints(v, "web") == 1 && endpoints(v, "later") == 1 && endpoints(v, "poison") == 0 && faulty(v, "poison")
	})
	on.Store(true)
	r.register("later", "later-2", "10.0.0.4", 80)
	r.register("web", "web-2", "10.0.0.5", 80)
	recorder.Wait(t, "changes of others, and what was known of the service", func(v registrytest.View) bool {
		return endpoints(v, "web") == 2 && endpoints(v, "later") == 1 && faulty(v, "later")
	})
	on.Store(false)
	r.register("later", "later-3", "10.0.0.6", 80)
	recorder.Wait(t, "the service that heals", func(v registrytest.View) bool { return endpoints(v, "later") == 3 && !faulty(v, "later") })
	r.deregister("poison-1")
	recorder.Wait(t, "the problem to go with its service", func(v registrytest.View) bool { return !faulty(v, "poison") })
	for _, s := range recorder.Statuses() {
		if s.Phase == federation.Failed {
			t.Errorf("the cluster was %s: %s", s.Phase, s.Message)
		}
	}
	stop()
	if !strings.Contains(log.String(), "quarantine_test.go") {
		t.Errorf("the log does not have the stack:\n%s", log.String())
	}
}
