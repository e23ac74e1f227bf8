package envoy

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/supported"
)

// Type is the type URL of a kind of resource.
type Type = resource.Type

// TypeRow is what is known of a type beside the functions that build its resources.
type TypeRow = resource.TypeRow

// Types are all types, in the order in which changes are pushed.
func Types() []TypeRow { return resource.Types }

// TypesWith are the types that have the trait, in the order in which changes are pushed.
func TypesWith(trait resource.Trait) []Type { return resource.TypesWith(trait) }

// The traits of types that decide how they are sent.
const (
	Built        = resource.Built
	Rooted       = resource.Rooted
	Destinations = resource.Destinations
	Assigned     = resource.Assigned
	Referred     = resource.Referred
	Refers       = resource.Refers
	InParts      = resource.InParts
	BuiltInParts = resource.BuiltInParts
	Confidential = resource.Confidential
)

// The types that are built.
const (
	ClusterType  = resource.ClusterType
	EndpointType = resource.EndpointType
	ListenerType = resource.ListenerType
	RouteType    = resource.RouteType
	NamesType    = resource.NamesType
	SecretType   = resource.SecretType

	ProxyConfigType = resource.ProxyConfigType
	HealthType      = resource.HealthType
)

// Reason says why something of the snapshot is not in a resource.
type Reason = resource.Reason

// ReasonPatchMatched is the code of reasons that tell of a patch that matched; it is not a problem.
const ReasonPatchMatched = resource.ReasonPatchMatched

// Node is what is known of a proxy.
type Node = node.Node

// NodeType is the type of a proxy.
type NodeType = node.Type

// RouterMode says what a gateway does.
type RouterMode = node.RouterMode

// View is what of the snapshot a node's resources depend on.
type View = node.View

// Variant is what a node claims and nothing confirms.
type Variant = node.Variant

// Facet is the smallest comparable part of a proxy on which a resource depends.
type Facet = node.Facet

// Scope says what a facet is about.
type Scope = node.Scope

// The node types and router modes.
const (
	Sidecar  = node.Sidecar
	Ingress  = node.Ingress
	Router   = node.Router
	Standard = node.Standard
	SNIDNAT  = node.SNIDNAT
)

// Field is a part of an object's spec that has no effect, or not the one that it
// says.
type Field = supported.Field

// NotHonoured tells what of the object has no effect on proxies. What it does not
// name is compiled.
func NotHonoured(o *federation.Object) []Field { return supported.NotHonoured(o) }

// Concerns reports whether resources for the facet can be made of the object.
func Concerns(o *federation.Object, f Facet, r *federation.Reader) bool {
	return supported.Concerns(o, f, r)
}

// ParseNode reads a node as Istio's proxies and plain Envoys send it. Errors name
// the field.
func ParseNode(n *corev3.Node) (Node, error) { return node.ParseNode(n, Given{}) }

// Given is what the hub knows of a proxy before it says anything.
type Given = node.Given

// ParseNodeOf is ParseNode for a proxy of which something is given.
func ParseNodeOf(n *corev3.Node, given Given) (Node, error) { return node.ParseNode(n, given) }

// ViewOf derives the view of a node. What it was derived from is in r.Deps()
// afterwards.
func ViewOf(n Node, r *federation.Reader) View { return node.ViewOf(n, r) }

// Facets are those of the node's view of the snapshot.
func Facets(t Type, n Node, s *federation.Snapshot) []Facet { return node.Facets(t, n, s) }

// Serves tells why the node is not a gateway of its network.
func Serves(n Node, s *federation.Snapshot) error { return node.Serves(n, s) }
