package kubernetes

import (
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/registries/registrytest"
)

func faults(v registrytest.View) []string {
	var found []string
	for _, p := range v.Problems {
		if p.Code == codeFault {
			found = append(found, p.Object)
		}
	}
	slices.Sort(found)
	return found
}

// TestR12PoisonObjects: an object of any kind over which the hub panics is set aside alone. The cluster is served, a problem names the
// object, what was known of it stays, and it heals when it changes or is deleted.
func TestR12PoisonObjects(t *testing.T) {
	t.Parallel()
	r := newRig(t, testbed.KubeOptions{})
	var later atomic.Bool
	var log testbed.LogText
	r.reg = func(o *Options) {
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		o.poison = func(at subject) {
			if strings.HasPrefix(at.k.Name, "poison") || at.k.Name == "later" && at.kind == kindServices && later.Load() {
				panic("a bug that " + at.k.Name + " meets")
			}
		}
	}
	r.kube.Apply(
		serviceManifest("web", "ports: [{name: http, port: 80}]"),
		suiteSlice("web-1", "web", "addressType: IPv4\nports: [{name: http, port: 8080}]\nendpoints: [{addresses: [10.44.0.1]}]"),
		serviceManifest("later", "ports: [{name: http, port: 81}]"), serviceManifest("poison-service", "ports: [{name: http, port: 80}]"),
		suiteSlice("poison-slice", "web", "addressType: IPv4\nports: [{name: http, port: 8080}]\nendpoints: [{addresses: [10.44.0.66]}]"),
		podManifest("poison-pod", "10.44.0.67"), "apiVersion: v1\nkind: Node\nmetadata: {name: poison-node}\n",
	)
	recorder, _ := registrytest.Start(t, r)
	recorder.WaitPhase(t, federation.Ready)
	endpoints := func(n int) func(registrytest.View) bool {
		return func(v registrytest.View) bool {
			s := v.Services[serviceKey("web")]
			return s != nil && len(s.Endpoints) == n
		}
	}
	recorder.Wait(t, "the service without its poisoned slice", endpoints(1))
	all := []string{"EndpointSlice suite/poison-slice", "Node poison-node", "Pod suite/poison-pod", "Service suite/poison-service"}
	recorder.Wait(t, "a problem of each poisoned object", func(v registrytest.View) bool { return slices.Equal(faults(v), all) })
	if text := log.String(); !strings.Contains(text, "a bug that poison-pod meets") || !strings.Contains(text, "quarantine_test.go") {
		t.Errorf("the log does not have the stack:\n%s", text)
	}

	later.Store(true)
	r.kube.Apply(serviceManifest("later", "ports: [{name: http, port: 82}]"),
		suiteSlice("web-2", "web", "addressType: IPv4\nports: [{name: http, port: 8080}]\nendpoints: [{addresses: [10.44.0.2]}]"))
	recorder.Wait(t, "changes of others", endpoints(2))
	v := recorder.Wait(t, "a problem of the object that changed",
		func(v registrytest.View) bool { return slices.Contains(faults(v), "Service suite/later") })
	if s := v.Services[serviceKey("later")]; s == nil || s.Ports[0].Number != 81 {
		t.Errorf("what was known of it is now %+v", s)
	}
	later.Store(false)
	r.kube.Apply(serviceManifest("later", "ports: [{name: http, port: 83}]"))
	recorder.Wait(t, "the object that heals", func(v registrytest.View) bool {
		return v.Services[serviceKey("later")].Ports[0].Number == 83 && slices.Equal(faults(v), all)
	})
	for _, path := range []string{
		"/api/v1/namespaces/suite/services/poison-service", "/apis/discovery.k8s.io/v1/namespaces/suite/endpointslices/poison-slice",
		"/api/v1/namespaces/suite/pods/poison-pod?gracePeriodSeconds=0", "/api/v1/nodes/poison-node",
	} {
		r.kube.Do("DELETE", path, nil)
	}
	recorder.Wait(t, "the problems to go with their objects", func(v registrytest.View) bool { return len(faults(v)) == 0 })
	for _, s := range recorder.Statuses() {
		if s.Phase == federation.Failed {
			t.Errorf("the cluster was %s: %s", s.Phase, s.Message)
		}
	}
}
