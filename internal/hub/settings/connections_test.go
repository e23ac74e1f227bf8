package settings

import (
	"testing"
)

func TestR01SharesOfConnections(t *testing.T) {
	s, _, err := configFile{XDS: xdsConfig{MaxConnections: 8}, GraphQL: graphqlConfig{MaxConnectionsPerSource: 7}}.connections(1000)
	if err != nil {
		t.Fatal(err)
	}
	if s.XDS.Total != 8 || s.XDS.PerSource != 2 || s.GraphQL.Total != 200 || s.GraphQL.PerSource != 7 || s.GraphQL.Descriptor != 800 {
		t.Errorf("got %+v", s)
	}
}
