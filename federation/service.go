package federation

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"time"
)

// Resolution says how a proxy finds the instance to send to (seeds 1.2; the
// first three numbers are fixed by seed 8).
type Resolution int

// The resolutions.
const (
	ClientSideLB    Resolution = 0 // picks from the endpoints it was given
	DNSLB           Resolution = 1 // resolves the endpoints' names, uses every answer
	Passthrough     Resolution = 2 // goes to the address that the caller asked for
	DNSRoundRobinLB Resolution = 3 // resolves one name, uses the first answer
	DynamicDNS      Resolution = 4 // resolves the name of which the hostname, a wildcard, is the pattern and for which the caller asks
)

// DynamicDNSEntries is the name under which the ServiceEntries are found whose services have the
// resolution DynamicDNS.
const DynamicDNSEntries = "resolution:DYNAMIC_DNS"

func (r Resolution) String() string {
	switch r {
	case DNSLB:
		return "DNS_LB"
	case Passthrough:
		return "PASSTHROUGH"
	case DNSRoundRobinLB:
		return "DNS_ROUND_ROBIN_LB"
	case DynamicDNS:
		return "DYNAMIC_DNS"
	}
	return "CLIENT_SIDE_LB"
}

// Shard is one registry's contribution to a service. Its builder hands
// it over with the Edit and never changes it afterwards.
type Shard struct {
	Ports               []Port            `json:"ports,omitempty"`
	VIPs                []netip.Prefix    `json:"vips,omitempty"` // of this cluster; an address is a full-length prefix
	Resolution          Resolution        `json:"resolution"`
	MeshExternal        bool              `json:"meshExternal,omitempty"`
	ExportTo            []string          `json:"exportTo,omitempty"` // namespaces; "." is its own; empty or "*" is everywhere
	ServiceAccounts     []string          `json:"serviceAccounts,omitempty"`
	Created             time.Time         `json:"created,omitzero"`
	UID                 string            `json:"uid,omitempty"`
	Labels              map[string]string `json:"labels,omitempty"`
	TrafficDistribution string            `json:"trafficDistribution,omitempty"` // as Kubernetes spells it
	Affinity            ClientAffinity    `json:"affinity,omitzero"`
	Endpoints           []Endpoint        `json:"endpoints,omitempty"`
	// External are the addresses at which the cluster says that the service is
	// reached from outside. They are of use for gateways of networks alone.
	External []Address `json:"external,omitempty"`
	// Aliases are other names under which callers ask for the service.
	Aliases []Hostname `json:"aliases,omitempty"`
	// NameOf is set on a shard that no registry gave: this service is a name that only
	// some registries give to the service of that hostname.
	NameOf Hostname `json:"nameOf,omitempty"`
	// ExternalName is the name for which the service stands. Where that is a service,
	// this one is another name of it; else its endpoint is that name.
	ExternalName Hostname `json:"externalName,omitempty"`
	// Selector adds workloads to the endpoints, and Bound the endpoints of other
	// services; Next finds them, again whenever either side changes.
	Selector *Selector      `json:"selector,omitempty"`
	Bound    []BoundService `json:"bound,omitempty"`
}

// Selector makes workloads of the service's namespace its endpoints: those that
// carry all of its labels.
type Selector struct {
	Labels map[string]string `json:"labels"` // none select nothing
	// Providers are those whose workloads are selected; none means every one.
	Providers []Provider `json:"providers,omitempty"`
	// TargetPorts is where a workload listens for a service port, by the port's
	// name, if the workload does not say so itself; else at the port's number.
	TargetPorts map[string]uint16 `json:"targetPorts,omitempty"`
	// TargetNames is under which name else a workload may say where it listens for
	// a service port, by the port's name. A workload that says neither does not
	// serve that port.
	TargetNames map[string]string `json:"targetNames,omitempty"`
}

// Equal compares all fields; nil equals nil alone.
func (s *Selector) Equal(o *Selector) bool {
	if s == nil || o == nil {
		return s == o
	}
	return maps.Equal(s.Labels, o.Labels) && slices.Equal(s.Providers, o.Providers) && maps.Equal(s.TargetPorts, o.TargetPorts) &&
		maps.Equal(s.TargetNames, o.TargetNames)
}

// BoundService is a service whose endpoints another one takes for its own
// (ServiceBinding of isthmus.dev).
type BoundService struct {
	Service  ServiceKey  `json:"service"`            // else the one of that hostname without namespace
	Clusters []ClusterID `json:"clusters,omitempty"` // none: of every cluster
	// Weight is its part of the requests, beside those of the other bound
	// services that have endpoints; 0 takes none.
	Weight uint32 `json:"weight"`
}

func boundEqual(a, b BoundService) bool {
	return a.Service == b.Service && slices.Equal(a.Clusters, b.Clusters) && a.Weight == b.Weight
}

// Equal compares all fields; endpoints in their order.
func (s *Shard) Equal(o *Shard) bool {
	return s == o || s.specEqual(o) && endpointsEqual(s.Endpoints, o.Endpoints)
}

func (s *Shard) specEqual(o *Shard) bool {
	return slices.Equal(s.Ports, o.Ports) && slices.Equal(s.VIPs, o.VIPs) && s.Resolution == o.Resolution &&
		s.MeshExternal == o.MeshExternal && slices.Equal(s.ExportTo, o.ExportTo) &&
		slices.Equal(s.ServiceAccounts, o.ServiceAccounts) && s.Created.Equal(o.Created) && s.UID == o.UID &&
		maps.Equal(s.Labels, o.Labels) && s.TrafficDistribution == o.TrafficDistribution && s.Affinity == o.Affinity &&
		slices.Equal(s.External, o.External) &&
		slices.Equal(s.Aliases, o.Aliases) && s.ExternalName == o.ExternalName && s.NameOf == o.NameOf &&
		s.Selector.Equal(o.Selector) && slices.EqualFunc(s.Bound, o.Bound, boundEqual)
}

func endpointsEqual(a, b []Endpoint) bool {
	return slices.EqualFunc(a, b, func(x, y Endpoint) bool { return x.Equal(&y) })
}

// ShardEndpoints are the endpoints of one shard that may be offered: what the
// registry said and what its selector and bindings add, less what the address
// policy refuses, sorted.
type ShardEndpoints struct {
	Shard     ShardKey
	Endpoints []Endpoint
}

// ClusterOf is where one of the endpoints runs: not the cluster of the shard,
// where a selector or a binding took it from another.
func (e ShardEndpoints) ClusterOf(of *Endpoint) ClusterID { return cmp.Or(of.Cluster, e.Shard.Cluster) }

// Service is one service of the federation: the merge of its shards. It is
// never changed after it was published; its slices and maps are read-only.
type Service struct {
	Key                 ServiceKey
	Ports               []ServicePort // by number, TCP before UDP
	ClusterVIPs         VIPSet        // gone when the cluster is gone
	Resolution          Resolution
	MeshExternal        bool
	ExportTo            []string
	Aliases             []Hostname     // sorted; those that every registry gives
	ExternalName        Hostname       // see Shard
	ServiceAccounts     []string       // declared, and those of the endpoints
	Peers               []PeerAccounts // by cluster and network
	Created             time.Time
	TrafficDistribution string
	Endpoints           []ShardEndpoints // in order of precedence
	Shards              ShardSet         // what each registry said
	Conflicts           []Conflict
	Drains              []ServiceDrain   // that cover endpoints of the service
	Undrained           []ShardEndpoints // the endpoints without what drains do; nil: as they are

	// Versions of the snapshot in which the part last changed.
	SpecVersion, EndpointsVersion, AccountsVersion uint64
}

// Order returns the shards that make up the service, first in precedence first.
func (s *Service) Order() []ShardKey {
	keys := make([]ShardKey, len(s.Endpoints))
	for i, e := range s.Endpoints {
		keys[i] = e.Shard
	}
	return keys
}

// Port finds the TCP-based port of that number, else the UDP one.
func (s *Service) Port(number uint16) (ServicePort, bool) {
	i := slices.IndexFunc(s.Ports, func(p ServicePort) bool { return p.Number == number })
	if i < 0 {
		return ServicePort{}, false
	}
	return s.Ports[i], true
}

// IsDynamic reports whether proxies resolve the names for which callers of the service ask.
func (s *Service) IsDynamic() bool { return s.Resolution == DynamicDNS }

// VisibleFrom reports whether workloads of the namespace may see the service
// (ConfigScope of seeds 1.2: "." is PRIVATE, the default is PUBLIC).
func (s *Service) VisibleFrom(namespace string) bool {
	return VisibleFrom(s.ExportTo, s.Key.Namespace, namespace)
}

// CountEndpoints is the number of endpoints over all shards.
func (s *Service) CountEndpoints() int {
	n := 0
	for _, e := range s.Endpoints {
		n += len(e.Endpoints)
	}
	return n
}

// ConflictKind is a stable code of a disagreement between registries.
type ConflictKind string

// The disagreements that Next finds.
const (
	ConflictPortProtocol   ConflictKind = "PORT_PROTOCOL"
	ConflictPortName       ConflictKind = "PORT_NAME"
	ConflictPortNumber     ConflictKind = "PORT_NUMBER"             // of an exported service
	ConflictAffinity       ConflictKind = "SESSION_AFFINITY"        // of an exported service
	ConflictAffinityConfig ConflictKind = "SESSION_AFFINITY_CONFIG" // of an exported service
	ConflictResolution     ConflictKind = "RESOLUTION"
	ConflictHeadless       ConflictKind = "HEADLESS"
	ConflictMeshExternal   ConflictKind = "MESH_EXTERNAL"
	ConflictExportTo       ConflictKind = "EXPORT_TO"
	ConflictAddressRefused ConflictKind = "ADDRESS_REFUSED"
)

// Conflict is a disagreement between clusters, or something of one cluster that
// was refused, as data that the API shows. The first cluster in precedence won.
type Conflict struct {
	Kind     ConflictKind
	Message  string
	Clusters []ClusterID // those concerned, the winner first
}
