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
)

// Type is the type URL of a sort of resources.
type Type string

// The types that are built.
const (
	ClusterType  Type = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	EndpointType Type = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	ListenerType Type = "type.googleapis.com/envoy.config.listener.v3.Listener"
	RouteType    Type = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
	SecretType   Type = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret" // see NewSecret: not built from a snapshot
)

// Reason says why something of the snapshot is not in a resource.
type Reason struct {
	Code    string // stable, upper case
	Message string
	Shard   federation.ShardKey // whose endpoint; zero where no endpoint is meant
	Address federation.Address
	// Endpoint is the endpoint itself, and Cause the object because of which it is
	// left out, or that is left out itself, where there is one.
	Endpoint *federation.Endpoint
	Cause    federation.ObjectKey
	// Service is the one that is left out, where one is.
	Service federation.ServiceKey
}

// The codes of reasons.
const (
	ReasonUnhealthy           = "UNHEALTHY"              // the registry says that the endpoint is unhealthy
	ReasonPortNotDeclared     = "PORT_NOT_DECLARED"      // the endpoint's cluster does not declare the port
	ReasonPortNotServed       = "PORT_NOT_SERVED"        // the endpoint does not listen for the port
	ReasonHostname            = "HOSTNAME"               // a DNS name among addresses that no proxy resolves
	ReasonSocket              = "SOCKET"                 // a unix socket where a name or an IP address is needed
	ReasonInvalidAddress      = "INVALID_ADDRESS"        // no address at all, or port 0
	ReasonDuplicateAddress    = "DUPLICATE_ADDRESS"      // another endpoint has the same address and port
	ReasonOneAddressOnly      = "ONE_ADDRESS_ONLY"       // the resolution uses the first name only
	ReasonHostnameTaken       = "HOSTNAME_TAKEN"         // a service of the same hostname comes first
	ReasonVIPTaken            = "VIP_TAKEN"              // a service with the same VIP and port comes first
	ReasonDomainTaken         = "DOMAIN_TAKEN"           // a service with the same short name or VIP comes first
	ReasonNoDestination       = "NO_DESTINATION"         // where a request should go does not exist, or is not known to the proxy
	ReasonGatewayConflict     = "GATEWAY_CONFLICT"       // an older Gateway, or an earlier server, has the port or the host
	ReasonOtherNetwork        = "OTHER_NETWORK"          // the endpoint is not of the router's own network
	ReasonSNIConflict         = "SNI_CONFLICT"           // connections to it would ask for the same server name as others
	ReasonClusterLocal        = "CLUSTER_LOCAL"          // the host is served by the proxy's own cluster only
	ReasonUnknownNetwork      = "UNKNOWN_NETWORK"        // the endpoint's label names a network that does not exist
	ReasonNoMutualTLS         = "NO_MUTUAL_TLS"          // the endpoint does not take mutual TLS, without which nothing comes from other networks
	ReasonNoIdentity          = "NO_IDENTITY"            // the proxy has no identity with which it could speak mutual TLS to other networks
	ReasonMutualTLSOff        = "MUTUAL_TLS_OFF"         // a rule has callers speak something else than mutual TLS of the mesh
	ReasonNoGatewayAddress    = "NO_GATEWAY_ADDRESS"     // no gateway of the endpoint's network has an address that may be used
	ReasonNoGatewayForNetwork = "NO_GATEWAY_FOR_NETWORK" // the gateways of the endpoint's network may not be entered from the proxy's
	ReasonInvalidRule         = "INVALID_RULE"           // the object holds a value that Envoy would refuse
)

// Build makes the resource of that name for a facet. A nil message means that
// the name does not exist (any more). What was read is in r.Deps() afterwards;
// beside these, a name is to be built again when Contributes says so. The
// message is new and not yet validated; it may hold one part in several places, so
// that it is for reading only. An error
// means that the name or the type is not one that Facets and Names give.
func Build(t Type, name string, f Facet, r *federation.Reader) (proto.Message, []Reason, error) {
	b := builder{facet: f, reader: r}
	var m proto.Message
	switch {
	case f.GRPC:
		return b.forGRPCClient(t, name)
	case t == ClusterType && f.Scope == scopeStatic:
		m = staticCluster(name, f.IPv6)
	case t == ClusterType && f.Scope == scopeGateway:
		m = b.gatewayCluster(name)
	case t == ClusterType && f.Scope == scopePods:
		m = b.podCluster(name)
	case t == EndpointType && f.Scope == scopePods:
		m = b.podAssignment(name)
	case t == ClusterType && f.Scope == scopePassed:
		m = b.passedCluster(name)
	case t == EndpointType && f.Scope == scopePassed:
		m = b.passedAssignment(name)
	case t == ClusterType && f.offers():
		m = b.cluster(name)
	case t == EndpointType && f.offers():
		m = b.assignment(name)
	case t == ListenerType:
		m = b.listener(name)
	case t == RouteType:
		m = b.routes(name)
	default:
		return nil, nil, fmt.Errorf("building %s %q: facet %s has no resources of this type", t, name, f)
	}
	return m, b.reasons, nil
}

// builder is one call of Build. Its methods return an untyped nil message where
// the name does not exist.
type builder struct {
	facet   Facet
	reader  *federation.Reader
	reasons []Reason
	// passages are the endpoints behind gateways, for Explain; else nil.
	passages map[*federation.Endpoint]crowd
	// causes are what virtual hosts and filters are made of, for Causes; else nil.
	causes map[any][]federation.ObjectKey
}

func (b *builder) leaveOut(r Reason) { b.reasons = append(b.reasons, r) }
