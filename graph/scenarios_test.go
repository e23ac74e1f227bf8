package graph_test

import (
	"testing"

	"isthmus.dev/isthmus/federation/federationtest"
	"isthmus.dev/isthmus/federation/fleet"
)

func TestScenarios(t *testing.T) {
	asked := 0
	federationtest.Each(t, func(t *testing.T, s *federationtest.Scenario) {
		query, ok := s.Section("want/query.graphql")
		if !ok {
			return
		}
		asked++
		if _, ok := s.Section("want/answer.json"); !ok {
			t.Fatal("want/query.graphql has no want/answer.json")
		}
		data, errs := hubOver(t, s.Snapshot(), fleet.New()).send(string(query), nil)
		if len(errs) > 0 {
			t.Fatal(string(errs))
		}
		s.Compare(t, "want/answer.json", indented(t, data))
	})
	if asked == 0 {
		t.Error("no scenario asks anything")
	}
}
