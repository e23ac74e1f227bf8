package kubernetes

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/kube/clients"
	"isthmus.dev/isthmus/registries/registrytest"
)

// shop is a service of the suite's namespace.
func shop(name string, hosts ...byte) registrytest.Service {
	s := registrytest.Service{Name: name, Port: 8080}
	for _, h := range hosts {
		addr, _ := ip(fmt.Sprintf("10.20.30.%d", h)).IP()
		s.Endpoints = append(s.Endpoints, addr)
	}
	return s
}

func offers(s registrytest.Service) func(registrytest.View) bool {
	return func(v registrytest.View) bool { return registrytest.Offers(v, serviceKey(s.Name), s) }
}

// neverLoses fails the test at its end if a service was away for a moment.
func neverLoses(recorder *registrytest.Recorder, services ...registrytest.Service) {
	recorder.Always(func(v registrytest.View, _ federation.Edit) string {
		for _, s := range services {
			if v.Services[serviceKey(s.Name)] == nil || !offers(s)(v) {
				return s.Name + " was taken away"
			}
		}
		return ""
	})
}

// TestF40FrozenServerAndHalfOpenLink: nothing breaks, and still the registry
// notices. Within which time is TestF40StaleWithin15s's matter.
func TestF40FrozenServerAndHalfOpenLink(t *testing.T) {
	t.Parallel()
	r := newRig(t, testbed.KubeOptions{})
	a := shop("web", 1)
	r.Apply(t, a)
	recorder, _ := registrytest.Start(t, r)
	recorder.Wait(t, "the service", offers(a))
	recorder.WaitPhase(t, federation.Ready)
	neverLoses(recorder, a)
	for _, fault := range []struct {
		name        string
		begin, heal func()
	}{
		{"frozen", r.kube.Pause, r.kube.Resume},
		{"half-open", r.proxy.Blackhole, r.proxy.Pass},
	} {
		edits := recorder.View().Edits
		fault.begin()
		v := recorder.WaitPhase(t, federation.Stale)
		if v.Edits != edits || v.Status.Message == "" {
			t.Errorf("%s: %d edits, message %q", fault.name, v.Edits-edits, v.Status.Message)
		}
		fault.heal()
		recorder.WaitPhase(t, federation.Ready)
	}
	b := shop("later", 2)
	r.Apply(t, b)
	recorder.Wait(t, "a change after the faults", offers(b))
	if lastEvent, lastSync := r.last.Activity(); lastEvent.IsZero() || lastSync.IsZero() {
		t.Errorf("last event %v, last sync %v", lastEvent, lastSync)
	}
}

// TestF41ExpiredVersionInsideAWatch: after a compaction the server answers a
// watch with 200 and an ERROR event 410.
func TestF41ExpiredVersionInsideAWatch(t *testing.T) {
	t.Parallel()
	r := newRig(t, testbed.KubeOptions{ExtraArgs: []string{"--watch-cache=false", "--etcd-compaction-interval=5s"}})
	a, b := shop("stays", 1), shop("goes", 2)
	r.Apply(t, a)
	r.Apply(t, b)
	recorder, _ := registrytest.Start(t, r)
	recorder.WaitPhase(t, federation.Ready)
	recorder.Wait(t, "both services", func(v registrytest.View) bool { return offers(a)(v) && offers(b)(v) })
	neverLoses(recorder, a)
	version := r.version(t)
	before := recorder.View().Edits
	r.Cut(t)
	recorder.WaitPhase(t, federation.Stale)
	r.Delete(t, b.Name)
	c := shop("new", 3)
	r.Apply(t, c)
	testbed.WaitFor(t, 2*time.Minute, "the version to expire", func() error {
		answer := r.kube.Do("GET", "/api/v1/services?watch=1&timeoutSeconds=1&resourceVersion="+version, nil)
		if answer.Status != http.StatusOK || !strings.Contains(string(answer.Body), `"code":410`) {
			return fmt.Errorf("status %d", answer.Status)
		}
		return nil
	})
	if v := recorder.View(); v.Edits != before {
		t.Errorf("%d edits while the link was cut", v.Edits-before)
	}
	r.Mend(t)
	recorder.Wait(t, "what changed meanwhile", func(v registrytest.View) bool { return offers(c)(v) && v.Services[serviceKey(b.Name)] == nil })
	recorder.WaitPhase(t, federation.Ready)
	relisted := false
	for _, e := range recorder.Edits()[before:] {
		relisted = relisted || e.Services.Full
	}
	if !relisted {
		t.Error("no full edit tells of the new list")
	}
}

func (r *rig) version(t *testing.T) string {
	t.Helper()
	var list struct {
		Metadata struct{ ResourceVersion string }
	}
	answer := r.kube.Do("GET", "/api/v1/services", nil)
	if err := json.Unmarshal(answer.Body, &list); err != nil {
		t.Fatal(err)
	}
	return list.Metadata.ResourceVersion
}

// cutter breaks off the third page of every list of services while it is on.
type cutter struct {
	next http.RoundTripper
	on   atomic.Bool
	page atomic.Int32
	hits atomic.Int32
}

func (c *cutter) RoundTrip(request *http.Request) (*http.Response, error) {
	query := request.URL.Query()
	if strings.HasSuffix(request.URL.Path, "/services") && query.Get("watch") == "" {
		if query.Get("continue") == "" {
			c.page.Store(0)
		}
		if c.page.Add(1) >= 3 && c.on.Load() {
			c.hits.Add(1)
			return nil, errors.New("broken off")
		}
	}
	return c.next.RoundTrip(request)
}

// TestF43PartialList: a list that breaks off on its third page is not a list.
func TestF43PartialList(t *testing.T) {
	t.Parallel()
	r := newRig(t, testbed.KubeOptions{})
	var all []registrytest.Service
	for i := range byte(9) {
		all = append(all, shop("many-"+strconv.Itoa(int(i)), i+1))
		r.Apply(t, all[i])
	}
	config := r.client.Config()
	cut := &cutter{next: config.Transport}
	config.Transport = cut
	client, err := clients.New(config)
	if err != nil {
		t.Fatal(err)
	}
	r.reg = func(o *Options) { o.Client, o.PageSize = client, 2 }
	cut.on.Store(true)
	recorder, _ := registrytest.Start(t, r)
	v := recorder.Wait(t, "trouble with the list", func(v registrytest.View) bool { return strings.Contains(v.Status.Message, "services") })
	if v.Edits != 0 || v.Status.Phase != federation.Stale {
		t.Errorf("%d edits, status %+v", v.Edits, v.Status)
	}
	cut.on.Store(false)
	recorder.Wait(t, "all services", func(v registrytest.View) bool {
		return offers(all[0])(v) && offers(all[8])(v)
	})
	recorder.WaitPhase(t, federation.Ready)
	neverLoses(recorder, all...)
	before := recorder.View().Edits
	cut.on.Store(true)
	r.last.Relist()
	v = recorder.Wait(t, "trouble with the list again", func(v registrytest.View) bool {
		return v.Status.Phase == federation.Stale && strings.Contains(v.Status.Message, "services")
	})
	if v.Edits != before {
		t.Errorf("%d edits from a list that broke off", v.Edits-before)
	}
	cut.on.Store(false)
	recorder.WaitPhase(t, federation.Ready)
	again := recorder.Edits()[before:]
	if len(again) != 1 || !again[0].Services.Full {
		t.Errorf("a list asked for again made %d edits, want one that is full", len(again))
	}
}

// TestF45HistoryThatWentBack: the cluster's etcd is restored from a backup; a
// watch of the old history would stay silent.
func TestF45HistoryThatWentBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, testbed.KubeOptions{})
	a, b, c := shop("old", 1), shop("new", 2), shop("newest", 3)
	r.Apply(t, a)
	backup := r.kube.Etcd.Save()
	r.Apply(t, b)
	for i := range byte(50) { // the old history is well ahead
		r.Apply(t, shop("new", 2, 10+i))
	}
	r.Apply(t, b)
	recorder, _ := registrytest.Start(t, r)
	recorder.Wait(t, "both services", func(v registrytest.View) bool { return offers(a)(v) && offers(b)(v) })
	recorder.WaitPhase(t, federation.Ready)
	neverLoses(recorder, a)
	r.kube.Stop()
	r.kube.Etcd.Load(backup)
	r.kube.Restart()
	recorder.Wait(t, "the state of the backup", func(v registrytest.View) bool { return v.Services[serviceKey(b.Name)] == nil })
	recorder.WaitPhase(t, federation.Ready)
	r.Apply(t, c)
	recorder.Wait(t, "a change in the new history", offers(c))
}

// TestF47OtherClusterAtTheSameAddress: same address, same credentials, and
// another kube-system.
func TestF47OtherClusterAtTheSameAddress(t *testing.T) {
	t.Parallel()
	r := newRig(t, testbed.KubeOptions{})
	a := shop("web", 1)
	r.Apply(t, a)
	recorder, stop := registrytest.Start(t, r)
	recorder.Wait(t, "the service", offers(a))
	known := recorder.WaitPhase(t, federation.Ready).Identity.UID
	edits := recorder.View().Edits
	r.kube.Replace()
	v := recorder.WaitPhase(t, federation.Held)
	if v.Edits != edits || !offers(a)(v) {
		t.Errorf("%d edits by another cluster", v.Edits-edits)
	}
	if !strings.Contains(v.Status.Message, known) || !strings.Contains(v.Status.Message, "another cluster") {
		t.Errorf("message %q", v.Status.Message)
	}
	stop()

	r.reg = func(o *Options) { o.Expect = known }
	later, _ := registrytest.Start(t, r)
	if v := later.WaitPhase(t, federation.Held); v.Edits != 0 {
		t.Errorf("%d edits by a cluster that is not the one attached", v.Edits)
	}
}

const podsMissing = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: partly}
rules:
- {apiGroups: ["", "discovery.k8s.io"], resources: [services, endpointslices, nodes, namespaces], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: partly}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: partly}
subjects:
- {kind: User, name: reader, apiGroup: rbac.authorization.k8s.io}
`

// TestF48MissingRights names what is missing, keeps what it has and heals.
func TestF48MissingRights(t *testing.T) {
	t.Parallel()
	r := newRig(t, testbed.KubeOptions{Users: []testbed.KubeUser{{Name: "reader"}}})
	a := shop("web", 1)
	r.Apply(t, a)
	r.client = r.connect(t, r.kube.User("reader"))
	recorder, stop := registrytest.Start(t, r)
	says := func(phase federation.Phase, part string) {
		t.Helper()
		recorder.Wait(t, string(phase)+" with "+part, func(v registrytest.View) bool {
			return v.Status.Phase == phase && strings.Contains(v.Status.Message, part)
		})
	}
	says(federation.Failed, "list namespaces")
	r.kube.Apply(podsMissing)
	says(federation.Failed, "grant it the verbs list and watch on pods")
	if v := recorder.View(); v.Edits != 0 {
		t.Errorf("%d edits though pods cannot be listed", v.Edits)
	}
	r.kube.GrantRead("reader")
	recorder.WaitPhase(t, federation.Ready)
	recorder.Wait(t, "the service", offers(a))
	neverLoses(recorder, a)
	r.kube.Delete("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: read-reader}\n")
	r.last.Relist()
	says(federation.Stale, "grant it the verbs list and watch on pods")
	r.kube.GrantRead("reader")
	recorder.WaitPhase(t, federation.Ready)
	stop()

	access := r.kube.User("reader")
	access.Token = "wrong-token"
	r.client = r.connect(t, access)
	recorder, _ = registrytest.Start(t, r)
	says(federation.Failed, "credentials")
	if strings.Contains(recorder.View().Status.Message, "wrong-token") {
		t.Error("the message holds the token")
	}
}
