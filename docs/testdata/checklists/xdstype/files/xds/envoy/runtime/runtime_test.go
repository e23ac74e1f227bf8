package runtime_test

import (
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/envoy/check"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

func TestSidecarsHaveALayer(t *testing.T) {
	s := federation.NewAggregate(nil).Latest()
	built := 0
	for _, f := range envoy.Facets(resource.RuntimeType, envoy.Node{Type: envoy.Sidecar}, s) {
		for _, name := range envoy.Names(resource.RuntimeType, f, s) {
			m, _, err := envoy.Build(resource.RuntimeType, name, f, s.Read())
			if err != nil || m == nil || check.Resource(m) != nil {
				t.Fatalf("%s: %v, %v, %v", name, m, err, check.Resource(m))
			}
			built++
		}
	}
	if built != 1 {
		t.Errorf("sidecars get %d layers", built)
	}
}
