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

// Trait is what a type may have in common with others. What depends on a type asks for a trait.
type Trait uint16

// The traits.
const (
	Built        Trait = 1 << iota // its resources are made from a snapshot
	Rooted                         // the hub decides the set: the type knows wildcards, and a SotW response is complete
	Shown                          // clients see its state for every proxy, also one that did not ask for it
	Destinations                   // its resources are about ports and subsets of services, and named after them
	Assigned                       // its resources are parts of clusters: these wait for them, and they stay while these stay
	Referred                       // resources of types with Refers refer to its resources
	Refers                         // clusters to which its resources refer are sent before them and removed after them
	InParts                        // its resources consist of parts that a proxy may refuse one by one
	BuiltInParts                   // its parts are built one by one, and resources share them
	Confidential                   // its content is read when it is sent, one resource at a time, and is shown to nobody
	ForAgents                      // it is for agents that answer DNS requests themselves
)

// TypeRow is what is known of a type beside the functions that build its resources.
type TypeRow struct {
	Type
	Service string // what proxies call its discovery service
	Plural  string // how people name its resources
	Title   string // of one resource, before its name
	Traits  Trait
}

// Types are all types, in the order in which changes are pushed.
var Types = []TypeRow{
	{ClusterType, "CDS", "clusters", "cluster", Built | Rooted | Shown | Destinations | Referred},
	{EndpointType, "EDS", "endpoints", "endpoints of cluster", Built | Shown | Destinations | Assigned},
	{ListenerType, "LDS", "listeners", "listener", Built | Rooted | Shown | Refers | InParts},
	{RouteType, "RDS", "routes", "route configuration", Built | Shown | Refers | InParts | BuiltInParts},
	{NamesType, "NDS", "names", "name table", Built | Rooted | ForAgents},
	{ProxyConfigType, "PCDS", "proxyconfigs", "proxy configuration", Rooted},
	{SecretType, "SDS", "secrets", "secret", Confidential},
}

// TypesWith are the types that have the trait, in the order of Types.
func TypesWith(trait Trait) []Type {
	var types []Type
	for _, r := range Types {
		if r.Traits&trait != 0 {
			types = append(types, r.Type)
		}
	}
	return types
}

// Has reports whether the type has the trait. A type that is not served has none.
func (t Type) Has(trait Trait) bool {
	for i := range Types {
		if Types[i].Type == t {
			return Types[i].Traits&trait != 0
		}
	}
	return false
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
