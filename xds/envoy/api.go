package envoy

import "isthmus.dev/isthmus/xds/envoy/resource"

// Type is the type URL of a kind of resource.
type Type = resource.Type

// The types that are built.
const (
	ClusterType  = resource.ClusterType
	EndpointType = resource.EndpointType
	ListenerType = resource.ListenerType
	RouteType    = resource.RouteType
	SecretType   = resource.SecretType
)

// Reason says why something of the snapshot is not in a resource.
type Reason = resource.Reason
