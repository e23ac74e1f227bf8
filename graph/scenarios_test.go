package graph_test

import (
	"path/filepath"
	"testing"
	"testing/synctest"

	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/federationtest"
	"isthmus.dev/isthmus/graph"
	"isthmus.dev/isthmus/internal/hub/status"
	"isthmus.dev/isthmus/internal/hub/status/statustest"
)

// TestScenarios asks the queries of scenarios while their proxies are connected and accept everything.
func TestScenarios(t *testing.T) {
	asked := 0
	for _, file := range federationtest.Files(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if s := federationtest.Load(t, file); s.Wants("want/query.graphql") {
					asked++
					askAll(t, s)
				}
			})
		})
	}
	if asked == 0 {
		t.Error("no scenario asks anything")
	}
}

func askAll(t *testing.T, s *federationtest.Scenario) {
	served := statustest.Serve(t, s)
	h := hubOver(t, s.Snapshot(), served.Fleet, func(o *graph.Options) {
		o.Snapshots, o.Config = s.Aggregate, graph.Config{
			Objects: objects{s}, NotHonoured: served.Objects.NotHonoured, Findings: served.Objects.Findings,
			ServiceFindings: served.Objects.ServiceFindings, Builds: served.Server.Builds,
			Deliveries: status.Delivery{Server: served.Server, Fleet: served.Fleet},
		}
	})
	for more := true; more; more = s.Next(t) {
		query, ok := s.Section("want/query.graphql")
		if !ok {
			continue
		}
		if _, ok := s.Section("want/answer.json"); !ok {
			t.Fatal("want/query.graphql has no want/answer.json")
		}
		statustest.Settle()
		data, errs := h.send(string(query), nil)
		if len(errs) > 0 {
			t.Fatal(string(errs))
		}
		s.Compare(t, "want/answer.json", indented(t, data))
	}
}

// objects are the configuration of the scenario, of one source.
type objects struct{ scenario *federationtest.Scenario }

func (o objects) Latest() *config.View {
	return &config.View{State: o.scenario.Config, Sources: []config.SourceStatus{{Name: "etcd", Synced: true}}}
}

func (o objects) LatestPublished() *config.View { return o.Latest() }
