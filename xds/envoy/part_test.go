package envoy_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
)

// nothingKept has every part built.
type nothingKept struct{}

func (nothingKept) Part(string) *envoy.Part { return nil }

func (nothingKept) Keep(string, *envoy.Part) {}

// assembledAlike fails if the routes of a node differ when they are assembled of parts, as proxies
// get them, and when they are built whole.
func assembledAlike(t *testing.T, n envoy.Node, s *federation.Snapshot) {
	t.Helper()
	for _, facet := range envoy.Facets(envoy.RouteType, n, s) {
		for _, name := range envoy.Names(envoy.RouteType, facet, s) {
			built, _, err := envoy.Build(envoy.RouteType, name, facet, s.Read())
			if err != nil {
				t.Fatalf("building: %v", err)
			}
			a, _, err := envoy.AssembleRoutes(name, facet, s.Read(), nothingKept{})
			if err != nil {
				t.Fatalf("assembling: %v", err)
			}
			if built == nil || a == nil {
				if built != nil || a != nil {
					t.Errorf("routes %s of facet %s: built: %t, assembled: %t", name, facet, built != nil, a != nil)
				}
				continue
			}
			assembled := built.ProtoReflect().New().Interface()
			if err := proto.Unmarshal(a.Bytes, assembled); err != nil {
				t.Fatal(err)
			}
			if !proto.Equal(built, assembled) {
				t.Errorf("routes %s of facet %s are built as\n%v\nand assembled as\n%v", name, facet, built, assembled)
			}
		}
	}
}
