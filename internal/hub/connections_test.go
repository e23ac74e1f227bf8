package hub

import (
	"testing"
)

func TestR01SharesOfConnections(t *testing.T) {
	s, err := configFile{XDS: xdsConfig{MaxConnections: 8}, GraphQL: graphqlConfig{MaxConnectionsPerSource: 7}}.connections(1000)
	if err != nil {
		t.Fatal(err)
	}
	if s.xds.Total != 8 || s.xds.PerSource != 2 || s.graphql.Total != 200 || s.graphql.PerSource != 7 || s.graphql.Descriptor != 800 {
		t.Errorf("got %+v", s)
	}
}
