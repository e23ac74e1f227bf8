package collectors

import (
	"net/http/httptest"
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/internal/metrics"
)

type faultyTitles []string

func (f faultyTitles) Faulty() []string { return f }

// TestR12ObjectsInQuarantineAreCounted: by kind, each once, and none counts as zero from the start.
func TestR12ObjectsInQuarantineAreCounted(t *testing.T) {
	set, err := schema.Load()
	if err != nil {
		t.Fatal(err)
	}
	mesh, counts := federation.NewAggregate(nil), metrics.New()
	q := Quarantine{Hub: "hub", Snapshots: mesh, Proxies: faultyTitles{}, Kinds: set.Kinds(), Counts: counts.Snapshots}
	wants := func(lines ...string) {
		t.Helper()
		recorder := httptest.NewRecorder()
		counts.Handler(func() { q.Measure() }).ServeHTTP(recorder, httptest.NewRequest("GET", "/metrics", nil))
		for _, line := range lines {
			if !strings.Contains(recorder.Body.String(), "\nisthmus_quarantined_objects"+line+"\n") {
				t.Errorf("lacks %s", line)
			}
		}
	}
	wants(`{kind="VirtualService"} 0`, `{kind="ServiceEntry"} 0`, `{kind="Pod"} 0`, `{kind="Service"} 0`)
	problem := func(cluster federation.ClusterID, objects ...string) {
		found := map[string]federation.Problem{}
		for _, o := range objects {
			found[o] = federation.Problem{Code: "HUB_FAULT", Object: o}
		}
		found["other"] = federation.Problem{Code: "PORT_INVALID", Object: "Pod shop/other"}
		w := mesh.Open(federation.ShardKey{Cluster: cluster, Provider: federation.Mock})
		w.Update(federation.Edit{
			Status:   &federation.RegistryStatus{Phase: federation.Ready},
			Problems: federation.Delta[string, federation.Problem]{Set: found},
		})
	}
	problem("hub", "VirtualService shop/a", "ServiceEntry shop/b")
	problem("c1", "Pod shop/a", "Service shop/a")
	problem("c2", "Pod shop/a")
	q.Proxies = faultyTitles{"VirtualService shop/a", "VirtualService shop/c", "Service shop/web.example.com"}
	wants(`{kind="VirtualService"} 2`, `{kind="ServiceEntry"} 1`, `{kind="Pod"} 2`, `{kind="Service"} 2`, `{kind="Gateway"} 0`)
	q.Proxies = faultyTitles{}
	wants(`{kind="VirtualService"} 1`, `{kind="Service"} 1`)
}
