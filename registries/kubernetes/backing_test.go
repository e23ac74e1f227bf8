package kubernetes

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/registries/registrytest"
)

// securedPod takes mutual TLS, at 10.1.0.7.
const securedPod = `apiVersion: v1
kind: Pod
metadata: {name: web-1, namespace: shop, uid: p1, labels: {security.istio.io/tlsMode: istio}}
spec: {nodeName: n1, serviceAccountName: web}
status: {phase: Running, podIPs: [{ip: 10.1.0.7}]}
`

const (
	namesPod     = "{addresses: [10.1.0.7], targetRef: {kind: Pod, name: web-1, uid: p1}}"
	namesNothing = "{addresses: [10.1.0.7]}"
)

func endpointsOf(endpoints string) string {
	return sliceOf("s", "addressType: IPv4\nendpoints: ["+endpoints+"]")
}

// secured is how the only endpoint is called: "TLS ACCOUNT", "plain", or "none"
// where there is none.
func secured(t *testing.T, m *model) string {
	t.Helper()
	endpoints := shardOf(t, full(m), "web.shop.svc.cluster.local").Endpoints
	switch {
	case len(endpoints) == 0:
		return "none"
	case len(endpoints) > 1:
		return fmt.Sprint(len(endpoints), " endpoints")
	case endpoints[0].TakesMutualTLS():
		return "TLS " + endpoints[0].ServiceAccount
	}
	return "plain"
}

// TestR80NeverPlainBecauseThePodIsUnknown has what may come between a pod and an
// endpoint. Each step says how the endpoint is called after it.
func TestR80NeverPlainBecauseThePodIsUnknown(t *testing.T) {
	gone := func(_ *testing.T, m *model) { m.remove(kindPods, key{Namespace: "shop", Name: "web-1"}) }
	object := func(document string) func(*testing.T, *model) {
		return func(t *testing.T, m *model) { fixture(t, m, document) }
	}
	change := func(document, old, now string) func(*testing.T, *model) {
		return object(strings.Replace(document, old, now, 1))
	}
	elsewhere := strings.NewReplacer("uid: p1", "uid: p2", "10.1.0.7", "10.1.0.8", "serviceAccountName: web",
		"serviceAccountName: later").Replace(securedPod)
	noSlice := func(_ *testing.T, m *model) { m.remove(kindSlices, key{Namespace: "shop", Name: "s"}) }
	type step struct {
		does func(*testing.T, *model)
		want string
	}
	for name, steps := range map[string][]step{
		"PodDeletedFirst": {
			{object(securedPod), "none"},
			{object(endpointsOf(namesPod)), "TLS shop/web"},
			{gone, "TLS shop/web"},
			{change(endpointsOf(namesPod), "uid: p1}", "uid: p1}, conditions: {ready: false, serving: true, terminating: true}"), "TLS shop/web"},
			{noSlice, "none"},
			{object(endpointsOf(namesPod)), "none"}, // what is known ends with the endpoint
		},
		"SliceFirst": {{object(endpointsOf(namesPod)), "none"}, {object(securedPod), "TLS shop/web"}},
		"FailedInAServersOwnWord": {
			{object(securedPod), "none"},
			{object(endpointsOf(namesPod)), "TLS shop/web"},
			{change(securedPod, "Running", "Failed"), "TLS shop/web"},
		},
		"AnotherUIDAtTheAddress": {
			{object(securedPod), "none"},
			{change(endpointsOf(namesPod), "uid: p1", "uid: p0"), "TLS shop/web"},
		},
		"ReplacedUnderItsName": {
			{object(securedPod), "none"},
			{object(endpointsOf(namesPod)), "TLS shop/web"},
			{object(elsewhere), "TLS shop/web"},
			{change(endpointsOf(namesPod), "10.1.0.7], targetRef: {kind: Pod, name: web-1, uid: p1",
				"10.1.0.8], targetRef: {kind: Pod, name: web-1, uid: p2"), "TLS shop/later"},
		},
		"LaterPodNotSeenYet": {
			{object(securedPod), "none"},
			{change(endpointsOf(namesPod), "10.1.0.7], targetRef: {kind: Pod, name: web-1, uid: p1",
				"10.1.0.8], targetRef: {kind: Pod, name: web-1, uid: p2"), "none"},
			{object(elsewhere), "TLS shop/later"},
		},
		"FoundByItsAddress": {
			{object(endpointsOf(namesNothing)), "plain"}, // nothing refers to a pod, and none is there
			{object(securedPod), "TLS shop/web"},
			{gone, "TLS shop/web"},
		},
		"AddressOfAnotherNamespace": {
			{change(securedPod, "namespace: shop", "namespace: other"), "none"},
			{object(endpointsOf(namesNothing)), "plain"},
		},
		"AddressOfAHost": {
			{change(securedPod, "spec: {", "spec: {hostNetwork: true, "), "none"},
			{object(endpointsOf(namesNothing)), "plain"},
		},
		"APodWithoutASidecar": {
			{change(securedPod, "tlsMode: istio", "tlsMode: disabled"), "none"},
			{object(endpointsOf(namesPod)), "plain"},
			{gone, "plain"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel("")
			fixture(t, m, plainService)
			for i, s := range steps {
				s.does(t, m)
				if got := secured(t, m); got != s.want {
					t.Errorf("after step %d: %s, want %s", i+1, got, s.want)
				}
			}
			sameAsFromNothing(t, m)
		})
	}
}

// TestR80AMissingPodBecomesAProblem after a while, by itself, and heals.
func TestR80AMissingPodBecomesAProblem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder := &registrytest.Recorder{}
		f := newFollower(New(Options{}), recorder)
		events := make(chan event, mostEvents)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan struct{})
		go func() {
			defer close(done)
			f.run(ctx, events)
		}()
		for _, e := range lists(1, parse(t, plainService)) {
			events <- e
		}
		events <- changed{kind: kindSlices, set: parse(t, endpointsOf(namesPod))}
		synctest.Wait()
		if v := recorder.View(); len(v.Problems) != 0 {
			t.Errorf("at once: %v", v.Problems)
		}
		elapse(podPatience)
		synctest.Wait()
		wantProblems(t, federation.Edit{Problems: federation.Delta[string, federation.Problem]{Set: recorder.View().Problems}}, map[string]string{
			"EndpointSlice shop/s endpoints[0].targetRef": `no running pod "web-1" with the UID "p1"`,
		})
		edits := recorder.View().Edits
		elapse(time.Hour)
		synctest.Wait()
		if n := recorder.View().Edits - edits; n != 0 {
			t.Errorf("%d edits though nothing changes", n)
		}
		events <- changed{kind: kindPods, set: parse(t, securedPod)}
		synctest.Wait()
		if v := recorder.View(); len(v.Problems) != 0 {
			t.Errorf("the pod is there: %v", v.Problems)
		}
		cancel()
		<-done
		recorder.Check(t)
	})
}

// TestR80RealPodsGoBeforeTheirSlice: pods are deleted by force, or fail, while
// their slice still has them, and new slices come before their pods. No endpoint
// is ever offered in plain text.
func TestR80RealPodsGoBeforeTheirSlice(t *testing.T) {
	t.Parallel()
	r := newRig(t, testbed.KubeOptions{})
	const pods = 12
	pod := func(i int) string {
		return strings.Replace(podManifest(fmt.Sprint("web-", i), fmt.Sprint("10.44.1.", i)), "labels: {",
			"labels: {security.istio.io/tlsMode: istio, ", 1)
	}
	slice := func(name string, from, to int) string {
		var endpoints []string
		for i := from; i < to; i++ {
			endpoints = append(endpoints, fmt.Sprintf("{addresses: [10.44.1.%d], targetRef: {kind: Pod, name: web-%d}}", i, i))
		}
		return suiteSlice(name, "web", "addressType: IPv4\nports: [{name: http, port: 8080}]\nendpoints: ["+strings.Join(endpoints, ", ")+"]")
	}
	r.kube.Apply(serviceManifest("web", "ports: [{name: http, port: 80}]"))
	for i := 1; i < pods; i++ {
		r.kube.Apply(pod(i))
		r.kube.ApplyStatus(pod(i))
	}
	r.kube.Apply(slice("web-a", 1, pods))
	recorder, _ := registrytest.Start(t, r)
	recorder.Always(func(v registrytest.View, _ federation.Edit) string {
		if s := v.Services[serviceKey("web")]; s != nil {
			for i := range s.Endpoints {
				if !s.Endpoints[i].TakesMutualTLS() || s.Endpoints[i].ServiceAccount == "" {
					return fmt.Sprintf("%s is called in plain text", s.Endpoints[i].Address)
				}
			}
		}
		return ""
	})
	endpoints := func(n int) func(registrytest.View) bool {
		return func(v registrytest.View) bool {
			return v.Services[serviceKey("web")] != nil && len(v.Services[serviceKey("web")].Endpoints) == n
		}
	}
	recorder.WaitPhase(t, federation.Ready)
	recorder.Wait(t, "the endpoints", endpoints(pods-1))
	r.kube.ApplyStatus(strings.Replace(pod(1), "phase: Running", "phase: Failed", 1))
	for i := 2; i < pods; i++ {
		r.kube.Do("DELETE", fmt.Sprintf("/api/v1/namespaces/%s/pods/web-%d?gracePeriodSeconds=0", testNamespace, i), nil)
	}
	recorder.Wait(t, "the pods to go, and their endpoints to stay",
		func(v registrytest.View) bool { return len(v.Workloads) == 0 && endpoints(pods-1)(v) })
	r.kube.Apply(slice("web-b", 50, 51))
	r.kube.Apply(pod(50))
	r.kube.ApplyStatus(pod(50))
	recorder.Wait(t, "the endpoint that came before its pod", endpoints(pods))
	r.kube.Do("DELETE", "/apis/discovery.k8s.io/v1/namespaces/"+testNamespace+"/endpointslices/web-a", nil)
	recorder.Wait(t, "the endpoints to go with their slice", endpoints(1))
}
