// Package resource has what all resources have in common: their types and names, the
// reasons why something is missing in them, and the smallest parts of their messages.
package resource

// Type is the type URL of a kind of resource.
type Type string

// The types that are built.
const (
	ClusterType  Type = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	EndpointType Type = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	ListenerType Type = "type.googleapis.com/envoy.config.listener.v3.Listener"
	RouteType    Type = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
	SecretType   Type = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret" // see NewSecret: not built from a snapshot
)
