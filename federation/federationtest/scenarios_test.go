package federationtest_test

import (
	"testing"

	"isthmus.dev/isthmus/federation/federationtest"
)

func TestScenarios(t *testing.T) {
	federationtest.Each(t, func(t *testing.T, s *federationtest.Scenario) {
		s.Compare(t, "want/snapshot.yaml", federationtest.Render(t, s.Snapshot()))
	})
}
