package graph_test

import (
	"testing"

	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/federationtest"
	"isthmus.dev/isthmus/graph"
	"isthmus.dev/isthmus/internal/hub/status"
	"isthmus.dev/isthmus/internal/hub/status/statustest"
)

// TestScenarios asks the queries of scenarios while their proxies are connected and accept everything.
func TestScenarios(t *testing.T) {
	statustest.Each(t, "want/query.graphql", askAll)
}

func askAll(t *testing.T, s *federationtest.Scenario, served statustest.Hub) {
	h := hubOver(t, s.Snapshot(), served.Fleet, func(o *graph.Options) {
		o.Snapshots, o.Config = s.Aggregate, graph.Config{
			Objects: objects{s}, NotHonoured: served.Objects.NotHonoured, Findings: served.Objects.Findings,
			ServiceFindings: served.Objects.ServiceFindings,
			Deliveries:      status.Delivery{Server: served.Server, Fleet: served.Fleet},
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
