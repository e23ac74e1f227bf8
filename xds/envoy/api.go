package envoy

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

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

// What is known of a proxy, and the parts of it on which resources depend.
type (
	Node       = node.Node
	NodeType   = node.NodeType
	RouterMode = node.RouterMode
	View       = node.View
	Variant    = node.Variant
	Facet      = node.Facet
	Scope      = node.Scope
)

// The node types and router modes.
const (
	Sidecar  = node.Sidecar
	Ingress  = node.Ingress
	Router   = node.Router
	Standard = node.Standard
	SNIDNAT  = node.SNIDNAT
)

// ParseNode reads a node as Istio's proxies and plain Envoys send it. Errors name
// the field.
func ParseNode(n *corev3.Node) (Node, error) { return node.ParseNode(n) }

// ViewOf derives the view of a node. What it was derived from is in r.Deps()
// afterwards.
func ViewOf(n Node, r *federation.Reader) View { return node.ViewOf(n, r) }

// Facets are those of the node's view of the snapshot.
func Facets(t Type, n Node, s *federation.Snapshot) []Facet { return node.Facets(t, n, s) }

// Serves tells why the node is no gateway of its network.
func Serves(n Node, s *federation.Snapshot) error { return node.Serves(n, s) }
