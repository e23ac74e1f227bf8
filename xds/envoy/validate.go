package envoy

import (
	"fmt"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
)

// maxName is the longest name of a resource: a hostname has up to 253 bytes, a
// subset 63, and a cluster's name is longer by up to 16.
const maxName = 332

// Validate checks a resource as strictly as Envoy and gRPC do and more: one bad
// resource makes Envoy drop a whole response, so that it must never be sent. The
// error names the resource and the field.
func Validate(m proto.Message) error {
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
	default:
		return fmt.Errorf("validating a resource: %T is of no known type", m)
	}
	if err == nil {
		err = validateName(name)
	}
	if err == nil {
		err = newSchemaCheck().message(m)
	}
	if err != nil {
		return fmt.Errorf("validating %s %q: %w", m.ProtoReflect().Descriptor().Name(), name, err)
	}
	return nil
}

func validateName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("name is empty")
	case len(name) > maxName:
		return fmt.Errorf("name has %d bytes, at most %d are sent", len(name), maxName)
	case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return fmt.Errorf("name has control characters")
	}
	return nil
}
