package serviceimport

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/kube/listwatch"
)

func web() Import {
	return Import{
		Spec:     Spec{Type: "ClusterSetIP", IPs: []string{"240.241.0.1"}, Ports: []Port{{"http", "TCP", 80}}},
		Clusters: []string{"c1", "c2"},
	}
}

// TestG70WhatIsDoneAboutAServiceImport, by what is exported, what is there, and who made it.
func TestG70WhatIsDoneAboutAServiceImport(t *testing.T) {
	want := web()
	ours := found{ours: true, digest: want.Spec.digest(), clusters: want.Clusters}
	old, alone := ours, ours
	ending, others := ours, ours
	old.digest, alone.clusters = "old", []string{"c1"}
	ending.ending, others.ours = true, false
	for name, c := range map[string]struct {
		want      *Import
		found     *found
		namespace bool
		todo      action
	}{
		"there is none":                        {&want, nil, true, create},
		"there is none, nor the namespace":     {&want, nil, false, nothing},
		"it is as it should be":                {&want, &ours, true, nothing},
		"it says something else":               {&want, &old, true, update},
		"it lacks a cluster":                   {&want, &alone, true, status},
		"the service is not exported":          {nil, &ours, true, remove},
		"the namespace ends":                   {nil, &ours, false, remove},
		"it is being deleted":                  {&want, &ending, true, nothing},
		"it is of somebody else":               {&want, &others, true, leave},
		"of somebody else, and not exported":   {nil, &others, true, nothing},
		"of somebody else, and being replaced": {nil, &found{ending: true}, true, nothing},
	} {
		is := found{}
		if c.found != nil {
			is = *c.found
		}
		if got := decide(c.want, is, c.found != nil, c.namespace); got != c.todo {
			t.Errorf("%s: %d, want %d", name, got, c.todo)
		}
	}
}

// TestG70WhatIsWrittenIsAsItShouldBe: read again, nothing is to be done.
func TestG70WhatIsWrittenIsAsItShouldBe(t *testing.T) {
	key := listwatch.Key{Namespace: "shop", Name: "web"}
	headless := Import{Spec: Spec{Type: "Headless", Ports: []Port{}}}
	for _, want := range []Import{web(), headless} {
		written, err := manifest(key, &want)
		if err != nil {
			t.Fatal(err)
		}
		if got := decide(&want, read(written), true, true); want.Clusters != nil && got != status || want.Clusters == nil && got != nothing {
			t.Errorf("after it was created: %d", got)
		}
		written.Object["status"] = map[string]any{"clusters": clusters(&want)}
		if got := decide(&want, read(written), true, true); got != nothing {
			t.Errorf("with its status: %d", got)
		}
	}
	odd := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "web", "annotations": map[string]any{mark: "derived"}}, "spec": map[string]any{"ports": "many"},
	}}
	if want := web(); decide(&want, read(odd), true, true) != update {
		t.Error("what cannot be read is not replaced")
	}
}

// TestG70AnImportIsOfTheExportedService and of no other one.
func TestG70AnImportIsOfTheExportedService(t *testing.T) {
	service := federation.ServiceKey{Hostname: "web.shop.svc.clusterset.local", Namespace: "shop"}
	shard := func(ports ...federation.Port) *federation.Shard {
		return &federation.Shard{Ports: ports}
	}
	s := federation.Empty()
	for id, said := range map[federation.ClusterID]*federation.Shard{
		"c2": shard(federation.Port{Name: "http", Number: 80, Protocol: federation.HTTP}),
		"c1": shard(federation.Port{Name: "http", Number: 80, Protocol: federation.HTTP},
			federation.Port{Name: "dns", Number: 53, Protocol: federation.UDP}),
	} {
		e := federation.Edit{Source: federation.ShardKey{Cluster: id, Provider: federation.Kubernetes}}
		e.Services.Set = map[federation.ServiceKey]*federation.Shard{service: said}
		s, _ = federation.Next(s, e)
	}
	svc, _ := s.Service(service)
	want := Import{
		Spec: Spec{
			Type: "ClusterSetIP", IPs: []string{service.AutomaticVIPs()[0].String()},
			Ports: []Port{{"dns", "UDP", 53}, {"http", "TCP", 80}}, SessionAffinity: "None",
		},
		Clusters: []string{"c1", "c2"},
	}
	if d := cmp.Diff(want, importOf(svc)); d != "" {
		t.Error(d)
	}
	for host, want := range map[federation.Hostname]bool{
		service.Hostname: true, "web.shop.svc.cluster.local": false, "a.web.shop.svc.clusterset.local": false,
		".shop.svc.clusterset.local":     false,
		"web.other.svc.clusterset.local": false, "clusterset.local": false,
	} {
		if _, is := keyOf(federation.ServiceKey{Hostname: host, Namespace: "shop"}); is != want {
			t.Errorf("%s: %v", host, is)
		}
	}
}

// TestG78AnImportHasTheAffinityOfTheOldestExport, as it is written and read again.
func TestG78AnImportHasTheAffinityOfTheOldestExport(t *testing.T) {
	service := federation.ServiceKey{Hostname: "web.shop.svc.clusterset.local", Namespace: "shop"}
	said := func(seconds uint32, created int64) *federation.Shard {
		return &federation.Shard{Created: time.Unix(created, 0), Affinity: federation.ClientAffinity{Seconds: seconds}}
	}
	for _, c := range []struct {
		first, second *federation.Shard
		want          string
	}{
		{said(600, 1), said(0, 2), `{"sessionAffinity":"ClientIP","sessionAffinityConfig":{"clientIP":{"timeoutSeconds":600}}}`},
		{said(600, 2), said(0, 1), `{"sessionAffinity":"None","sessionAffinityConfig":null}`},
		{said(600, 2), said(60, 1), `{"sessionAffinity":"ClientIP","sessionAffinityConfig":{"clientIP":{"timeoutSeconds":60}}}`},
	} {
		s := federation.Empty()
		for id, shard := range map[federation.ClusterID]*federation.Shard{"c1": c.first, "c2": c.second} {
			e := federation.Edit{Source: federation.ShardKey{Cluster: id, Provider: federation.Kubernetes}}
			e.Services.Set = map[federation.ServiceKey]*federation.Shard{service: shard}
			s, _ = federation.Next(s, e)
		}
		svc, _ := s.Service(service)
		want := importOf(svc)
		written, err := manifest(listwatch.Key{Namespace: "shop", Name: "web"}, &want)
		if err != nil {
			t.Fatal(err)
		}
		spec := written.Object["spec"].(map[string]any)
		got, err := json.Marshal(map[string]any{
			"sessionAffinity":       spec["sessionAffinity"],
			"sessionAffinityConfig": spec["sessionAffinityConfig"],
		})
		if err != nil || string(got) != c.want {
			t.Errorf("the import says %s, want %s (%v)", got, c.want, err)
		}
		if todo := decide(&want, read(written), true, true); todo != status {
			t.Errorf("as it was created, it is to be changed: %d", todo)
		}
	}
}
