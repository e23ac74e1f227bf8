// Package node reads what a proxy reports about itself, and combines it with registries
// and configuration: the proxy's view, and the facets on which its resources depend.
package node

import (
	"net/netip"
	"strings"
	"unsafe"

	"isthmus.dev/isthmus/federation"
)

// Type is the type of a proxy, the first part of its ID.
type Type string

// The node types.
const (
	Sidecar Type = "sidecar" // beside a workload
	Ingress Type = "ingress" // entry of a cluster
	Router  Type = "router"  // stand-alone
)

// RouterMode says what a gateway does; sidecars are Standard.
type RouterMode string

// The router modes.
const (
	Standard RouterMode = "standard" // a plain gateway
	SNIDNAT  RouterMode = "sni-dnat" // bridges two networks
)

// Node is what a proxy reports about itself.
type Node struct {
	ID             string // whole: TYPE~IP~NAME~DOMAIN
	Type           Type
	RouterMode     RouterMode
	Addresses      []netip.Addr // at least one; in the order in which the proxy gives them
	Name           string       // third part of the ID; on Kubernetes POD.NAMESPACE
	Domain         string       // suffix of short names, such as ns.svc.cluster.local
	Cluster        federation.ClusterID
	Network        federation.NetworkID // empty: that of the cluster
	Namespace      string
	ServiceAccount string // empty: it does not say
	Locality       federation.Locality
	Labels         map[string]string
	HTTPProxyPort  uint16 // 0: no explicit HTTP proxy
	DNSCapture     bool
	AgentNames     bool   // Istio's agent beside it answers captured DNS requests, not a listener
	Capture        bool   // the workload's connections are redirected to the proxy
	Transparent    bool   // they come to it with the addresses of their ends (TPROXY)
	DualStack      bool   // Istio's dual stack is on for it: if it has addresses of both families, it reaches both
	Identity       bool   // it has an identity of the mesh and its trust bundle
	Agent          bool   // these come from Istio's agent beside it, not from the hub
	Stats          bool   // it has Istio's filters for metrics and for the exchange of metadata
	Delimited      bool   // its bootstrap finds names in its statistics by the semicolon behind them
	Proven         bool   // its namespace, service account and cluster are; else all that it says is trusted
	Group          string // WorkloadGroup of which it registers itself as a workload; empty: of none
	Entry          string // WorkloadEntry of its namespace that it is the proxy of; empty: it names none
	Probed         bool   // its agent reports the health of the workload
	GRPC           bool   // there is no proxy: the workload's own gRPC library asks
	UserAgent      string // "envoy"
	Version        string // of the user agent
	MeshVersion    string // ISTIO_VERSION
	Settings       Settings
	Ignored        string // settings of it that have no effect, joined by commas
	Metadata       string // its short texts, for EnvoyFilters: KEY=VALUE, sorted, each between zero bytes
}

// Workload is as which the proxy says that it runs.
func (n Node) Workload() federation.WorkloadKey {
	name, _ := strings.CutSuffix(n.Name, "."+n.Namespace)
	return federation.WorkloadKey{Namespace: n.Namespace, Name: name}
}

// What a node takes beside the bytes of its texts; at least what the data structures take.
const (
	nodeOverhead  = 512
	labelOverhead = 128
)

// Bytes is what the node takes in memory, estimated.
func (n Node) Bytes() int {
	bytes := nodeOverhead + len(n.ID) + len(n.Network) + len(n.Cluster) + len(n.Namespace) + len(n.ServiceAccount) +
		len(n.Locality.Region) + len(n.Locality.Zone) +
		len(n.Locality.SubZone) + len(n.UserAgent) + len(n.Version) + len(n.MeshVersion) + len(n.Ignored) + len(n.Metadata) +
		len(n.Group) + len(n.Entry) + len(n.Addresses)*int(unsafe.Sizeof(netip.Addr{}))
	for name, value := range n.Labels {
		bytes += labelOverhead + len(name) + len(value)
	}
	return bytes
}

// Place is where the proxy is, for the queries of a snapshot.
func (n Node) Place() federation.Place {
	return federation.Place{Cluster: n.Cluster, Network: n.Network, Addresses: n.Addresses}
}
