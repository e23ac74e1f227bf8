package endpoint

import (
	"testing"

	"isthmus.dev/isthmus/federation"
)

// TestU26WorkloadsHaveTheNameOfTheirController, or that of their label, and the service and revision that their labels give.
func TestU26WorkloadsHaveTheNameOfTheirController(t *testing.T) {
	for _, c := range []struct {
		workload string
		labels   map[string]string
		want     string
	}{
		{"shop/web-5c9f-abcde", map[string]string{"pod-template-hash": "5c9f", "app": "front", "version": "v1"}, "web;shop;front;v1;c1"},
		{"shop/db-0", map[string]string{"statefulset.kubernetes.io/pod-name": "db-0"}, "db;shop;db;;c1"},
		{"shop/log-x2x4z", map[string]string{"controller-revision-hash": "77"}, "log;shop;log;;c1"},
		{"shop/job-abcde", nil, "job-abcde;shop;job-abcde;;c1"},
		{"shop/web", map[string]string{"pod-template-hash": "5c9f"}, "web;shop;web;;c1"},
		{"shop/-0", map[string]string{"controller-revision-hash": "7"}, "-0;shop;-0;;c1"},
		{
			"shop/vm",
			map[string]string{"service.istio.io/canonical-name": "a", "app": "b", "service.istio.io/canonical-revision": "latest"},
			"vm;shop;a;;c1",
		},
		{"", map[string]string{"app": "a"}, ";own;a;;c1"},
		{"shop/web-6d7-abcde", map[string]string{"rollouts-pod-template-hash": "6d7"}, "web;shop;web;;c1"},
		{"shop/report-abcde", map[string]string{"batch.kubernetes.io/job-name": "report"}, "report;shop;report;;c1"},
		{"shop/report-29012345-abcde", map[string]string{"job-name": "report-29012345"}, "report;shop;report;;c1"},
		{"shop/other-abcde", map[string]string{"job-name": "report"}, "other-abcde;shop;other-abcde;;c1"},
		{
			"shop/web-5c9f-abcde",
			map[string]string{"pod-template-hash": "5c9f", "service.istio.io/workload-name": "shopfront"},
			"shopfront;shop;shopfront;;c1",
		},
		{"shop/ledger-10.9.0.1", map[string]string{"service.istio.io/workload-name": "ledger", "app": "books"}, "ledger;shop;books;;c1"},
	} {
		of := &federation.Service{Key: federation.ServiceKey{Namespace: "own", Hostname: "a.own.svc.cluster.local"}}
		if got := workloadOf(&federation.Endpoint{Workload: c.workload, Labels: c.labels}, of, "c1"); got != c.want {
			t.Errorf("the workload of %q with %v is %q, want %q", c.workload, c.labels, got, c.want)
		}
	}
}
