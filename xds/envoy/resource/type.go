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
	NamesType    Type = "type.googleapis.com/istio.networking.nds.v1.NameTable"
	// HealthType is that of requests by which Istio's agent reports health; nothing is sent.
	HealthType Type = "type.googleapis.com/istio.v1.HealthInformation"
	// ProxyConfigType has the trust bundles for Istio's agent; see xds: not built from a snapshot.
	ProxyConfigType Type = "type.googleapis.com/istio.mesh.v1alpha1.ProxyConfig"
	SecretType      Type = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret" // see NewSecret: not built from a snapshot
)

// TypeRow is what is known of a type beside the functions that build its resources.
type TypeRow struct {
	Type
	Service string // what proxies call its discovery service
	Plural  string // how people name its resources
	Title   string // of one resource, before its name
	Built   bool   // from a snapshot
	Rooted  bool   // the hub decides the set: the type knows wildcards, and a SotW response is complete
}

// Types are all types, in the order in which changes are pushed.
var Types = []TypeRow{
	{ClusterType, "CDS", "clusters", "cluster", true, true},
	{EndpointType, "EDS", "endpoints", "endpoints of cluster", true, false},
	{ListenerType, "LDS", "listeners", "listener", true, true},
	{RouteType, "RDS", "routes", "route configuration", true, false},
	{NamesType, "NDS", "names", "name table", true, true},
	{ProxyConfigType, "PCDS", "proxy configurations", "proxy configuration", false, true},
	{SecretType, "SDS", "secrets", "secret", false, false},
}

// Row returns the row of the type. A type that is not served has an empty one.
func (t Type) Row() TypeRow {
	for _, r := range Types {
		if r.Type == t {
			return r
		}
	}
	return TypeRow{Type: t}
}
