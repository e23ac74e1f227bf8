// Package federation is the domain of the hub: immutable values that say what
// every attached cluster offers, the merge law that joins them (Next), and the
// versioned view that every reader shares (Snapshot). It knows no protocol, no
// registry and no reader.
package federation

import (
	"cmp"
	"strings"
)

// ClusterID names one attached registry's cluster or datacenter. It is unique
// in a hub and never changes after attach.
type ClusterID string

// NetworkID names a set of addresses that can reach one another directly.
type NetworkID string

// DefaultNetwork is the network of an endpoint that neither its own label nor
// its cluster places anywhere else.
const DefaultNetwork NetworkID = "default"

// Hostname is the fully qualified, lower-case name of a service (seeds 1.2).
type Hostname string

// Provider is the kind of a registry. It is a label: outside of the registry's own room and
// the list of kinds, code asks for its traits.
type Provider string

// HasObjects reports whether clusters of the provider have an API server with objects that the hub reads and writes beside
// what their registry reads: custom resources, Ingresses, remote Secrets.
func (p Provider) HasObjects() bool { return p == Kubernetes }

// OfConfiguration reports whether the provider has what objects of the configuration declare, such as ServiceEntries: it is
// in no cluster's registry.
func (p Provider) OfConfiguration() bool { return p == External }

// Section is the name of its section in the config file, in Cluster objects and in requests.
func (p Provider) Section() string { return strings.ToLower(string(p)) }

// The providers that the hub knows by name (seeds 1.7).
const (
	Kubernetes Provider = "Kubernetes"
	Consul     Provider = "Consul"
	External   Provider = "External"
	MCP        Provider = "MCP"
	Mock       Provider = "Mock"
)

// ServiceKey is the identity of a service: one service per hostname and
// namespace.
type ServiceKey struct {
	Hostname  Hostname
	Namespace string
}

// Compare orders keys by hostname, then namespace.
func (k ServiceKey) Compare(o ServiceKey) int {
	return cmp.Or(cmp.Compare(k.Hostname, o.Hostname), cmp.Compare(k.Namespace, o.Namespace))
}

func (k ServiceKey) String() string {
	if k.Namespace == "" {
		return string(k.Hostname)
	}
	return k.Namespace + "/" + string(k.Hostname)
}

// Title is how problems name the service, like "Service shop/web.example.com".
func (k ServiceKey) Title() string { return "Service " + k.String() }

// ShardKey names one registry's contribution.
type ShardKey struct {
	Cluster  ClusterID
	Provider Provider
}

// Compare orders shards by cluster, then provider.
func (k ShardKey) Compare(o ShardKey) int {
	return cmp.Or(cmp.Compare(k.Cluster, o.Cluster), cmp.Compare(k.Provider, o.Provider))
}

func (k ShardKey) String() string { return string(k.Cluster) + "/" + string(k.Provider) }

// The beginnings of the names and of the labels' keys under which objects are found: kinds
// of configuration write them, and builders look them up.
const (
	WorkloadsName = "workloads:"  // policies, by the namespace and a label of the workloads that they select
	PlainTextName = "plain-text:" // PeerAuthentications that have workloads of a namespace accept plain text alone
	PatchesName   = "patches:"    // EnvoyFilters, by their namespace and the resources that they may patch
	FailoverLabel = "failover:"   // rules and settings, by a label of proxies by which they order endpoints; no label of a proxy begins so
)

// PatchName is the name under which EnvoyFilters of a namespace are found that may patch
// resources of the type: those of that name, or with * of any name.
func PatchName(namespace, resourceType, name string) string {
	return PatchesName + namespace + "/" + resourceType + "/" + name
}

// The types of resources in names of EnvoyFilters. A patch of a cluster may name the host of its service.
const (
	PatchedCluster  = "cluster"
	PatchedHost     = "host"
	PatchedListener = "listener"
	PatchedRoutes   = "routes"
)

// Locality says where something runs. Empty fields are unknown.
type Locality struct {
	Region  string `json:"region,omitempty"`
	Zone    string `json:"zone,omitempty"`
	SubZone string `json:"subZone,omitempty"`
}

// Compare orders localities by region, zone and sub-zone.
func (l Locality) Compare(o Locality) int {
	return cmp.Or(cmp.Compare(l.Region, o.Region), cmp.Compare(l.Zone, o.Zone), cmp.Compare(l.SubZone, o.SubZone))
}

func (l Locality) String() string {
	switch {
	case l.SubZone != "":
		return l.Region + "/" + l.Zone + "/" + l.SubZone
	case l.Zone != "":
		return l.Region + "/" + l.Zone
	}
	return l.Region
}
