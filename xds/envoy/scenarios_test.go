package envoy_test

import (
	"path"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation/federationtest"
	"isthmus.dev/isthmus/xds/envoy"
)

func TestScenarios(t *testing.T) {
	federationtest.Each(t, func(t *testing.T, s *federationtest.Scenario) {
		for _, proxy := range s.Proxies {
			metadata, err := structpb.NewStruct(proxy.Metadata)
			if err != nil {
				t.Fatalf("metadata of %s: %v", proxy.Name, err)
			}
			n, err := envoy.ParseNode(&corev3.Node{Id: proxy.ID, Metadata: metadata, Locality: &corev3.Locality{
				Region: proxy.Locality.Region, Zone: proxy.Locality.Zone, SubZone: proxy.Locality.SubZone,
			}})
			if err != nil {
				t.Fatalf("proxy %s: %v", proxy.Name, err)
			}
			built := map[envoy.Type][]builtResource{}
			for typ, section := range map[envoy.Type]string{
				envoy.ClusterType: "clusters", envoy.EndpointType: "endpoints",
				envoy.ListenerType: "listeners", envoy.RouteType: "routes",
			} {
				built[typ] = build(t, typ, n, s.Snapshot())
				s.Compare(t, path.Join("want/xds", proxy.Name, section+".yaml"), render(t, built[typ]))
			}
			if err := testbed.ValidateEnvoy(t, bootstrap(t, built)); err != nil {
				t.Errorf("proxy %s: %v", proxy.Name, err)
			}
		}
	})
}
