// Package envoy makes Envoy's resources out of a snapshot. Everything in it is
// a pure function of its arguments: equal arguments give equal bytes.
//
// A proxy is split into facets, the smallest parts on which a set of resources
// depends. Proxies with equal facets share one build and one serialisation,
// whatever else differs between them.
package envoy

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// Build makes the resource of that name for a facet. A nil message means that
// the name does not exist (any more). What was read is in r.Deps() afterwards;
// beside these, a name is to be built again when Contributes says so. The
// message is new and not yet validated; it may hold one part in several places, so
// that it is for reading only. An error
// means that the name or the type is not one that Facets and Names give.
func Build(t resource.Type, name string, f node.Facet, r *federation.Reader) (proto.Message, []resource.Reason, error) {
	b := builder{facet: f, reader: r}
	var m proto.Message
	switch {
	case f.GRPC:
		return b.forGRPCClient(t, name)
	case t == resource.ClusterType && f.Scope == node.ScopeStatic:
		m = staticCluster(name, f.IPv6)
	case t == resource.ClusterType && f.Scope == node.ScopeGateway:
		m = b.gatewayCluster(name)
	case t == resource.ClusterType && f.Scope == node.ScopePods:
		m = b.podCluster(name)
	case t == resource.EndpointType && f.Scope == node.ScopePods:
		m = b.podAssignment(name)
	case t == resource.ClusterType && f.Scope == node.ScopePassed:
		m = b.passedCluster(name)
	case t == resource.EndpointType && f.Scope == node.ScopePassed:
		m = b.passedAssignment(name)
	case t == resource.ClusterType && f.Offers():
		m = b.cluster(name)
	case t == resource.EndpointType && f.Offers():
		m = b.assignment(name)
	case t == resource.ListenerType:
		m = b.listener(name)
	case t == resource.RouteType:
		m = b.routes(name)
	default:
		return nil, nil, fmt.Errorf("building %s %q: facet %s has no resources of this type", t, name, f)
	}
	return m, b.reasons, nil
}

// builder is one call of Build. Its methods return an untyped nil message where
// the name does not exist.
type builder struct {
	facet   node.Facet
	reader  *federation.Reader
	reasons []resource.Reason
	// passages are the endpoints behind gateways, for Explain; else nil.
	passages map[*federation.Endpoint]passage
	// causes are what virtual hosts and filters are made of, for Causes; else nil.
	causes *causes
}

// passage is the gateways through which an endpoint is reached.
type passage struct {
	gateways []federation.Gateway
	dead     bool // probes reach none of the gateways
}

func (b *builder) leaveOut(r resource.Reason) { b.reasons = append(b.reasons, r) }
