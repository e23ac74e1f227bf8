// Package check refuses resources that Envoy or a gRPC client would refuse.
package check

import (
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"

	"isthmus.dev/isthmus/xds/envoy/resource"
)

// Resource checks a resource as strictly as Envoy and gRPC do and more: one bad
// resource makes Envoy drop a whole response, so that it must never be sent. The
// error names the resource and the field.
func Resource(m proto.Message) error {
	var err error
	var name string
	switch m := m.(type) {
	case *clusterv3.Cluster:
		name, err = m.GetName(), validateCluster(m)
	case *endpointv3.ClusterLoadAssignment:
		name, err = m.GetClusterName(), validateAssignment(m, onlyAddresses)
	case *listenerv3.Listener:
		name, err = m.GetName(), validateListener(m)
	case *routev3.RouteConfiguration:
		name, err = m.GetName(), validateRoutes(m)
	case interface{ GetName() string }:
		name = m.GetName() // of a type without rules beside its schema
	default:
		return newSchemaCheck().message(m) // of a type whose messages do not say their name
	}
	if err == nil {
		err = resource.ValidateName(name)
	}
	if err == nil {
		err = newSchemaCheck().message(m)
	}
	if err != nil {
		return fmt.Errorf("validating %s %q: %w", m.ProtoReflect().Descriptor().Name(), name, err)
	}
	return nil
}
