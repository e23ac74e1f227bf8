package federation

import (
	"net/netip"
	"slices"
	"strings"
	"time"
)

// MeshGroup is the API group of the hub's own kinds.
const MeshGroup = "isthmus.dev"

// The hub's own kinds. The specs of their objects are the values below.
var (
	ClusterKind        = Kind{MeshGroup, "Cluster"}        // *ClusterObject
	NetworkKind        = Kind{MeshGroup, "Network"}        // *NetworkObject
	ServiceBindingKind = Kind{MeshGroup, "ServiceBinding"} // *ServiceBinding
	MeshSettingsKind   = Kind{MeshGroup, "MeshSettings"}   // *MeshSettings
	// AllocationKind is for the hub alone: the automatic VIPs of one hostname and
	// namespace. It is stored like other kinds and never shown.
	AllocationKind = Kind{MeshGroup, "Allocation"} // *Allocation
	// GatewayHealthKind is for the hub alone, too: what one hub found of gateways.
	GatewayHealthKind = Kind{MeshGroup, "GatewayHealth"} // *GatewayHealth
	// HubPresenceKind is for the hub alone, too: there is one for each hub on the store.
	HubPresenceKind = Kind{MeshGroup, "HubPresence"} // *HubPresence
	// WorkloadHealthKind is for the hub alone, too: what a proxy reports about the workload of a WorkloadEntry. The
	// object has the name and namespace of the WorkloadEntry.
	WorkloadHealthKind = Kind{MeshGroup, "WorkloadHealth"} // *WorkloadHealth
	// BackendTLSKind is for the hub alone, too: the TLS that gateways speak to ports of a service,
	// as a rule about the service.
	BackendTLSKind = Kind{MeshGroup, "BackendTLS"} // *networking.DestinationRule
	// ClientCertificateKind is for the hub alone, too: the certificate that proxies of a Gateway of the
	// Gateway API present to backends. The object has the name and namespace of the Gateway.
	ClientCertificateKind = Kind{MeshGroup, "ClientCertificate"} // *ClientCertificate
	// ConfigMapKind is for the hub alone, too: what it keeps of a ConfigMap of a cluster.
	ConfigMapKind = Kind{"", "ConfigMap"} // *ConfigMap
	// NamespaceKind is for the hub alone, too: what it keeps of a Namespace of a cluster.
	NamespaceKind = Kind{"", "Namespace"} // *Namespace
)

// MeshSettingsKey is where the settings of the whole mesh are.
var MeshSettingsKey = ObjectKey{Group: MeshGroup, Kind: MeshSettingsKind.Name, Name: "default"}

// ConfigMap is what the hub keeps of a ConfigMap of a cluster.
type ConfigMap struct {
	Authorities string `json:"ca.crt"` // certificates, PEM
}

// ClientCertificate is the Secret with the certificate that proxies present to servers.
type ClientCertificate struct {
	Namespace string `json:"namespace,omitempty"` // empty: that of the proxies
	Secret    string `json:"secret,omitempty"`    // empty: the one that is wanted cannot be used
}

// Namespace is what the hub keeps of a Namespace of a cluster.
type Namespace struct {
	Labels map[string]string `json:"labels,omitempty"`
}

// UnhealthyAnnotation of a WorkloadEntry has its workload get no requests; the value is the reason.
const UnhealthyAnnotation = MeshGroup + "/unhealthy"

// HealthReportsAnnotation of a WorkloadEntry, if it is true, has its workload get requests only while its proxy
// reports that it is healthy.
const HealthReportsAnnotation = "proxy.istio.io/health-checks-enabled"

// CredentialsAnnotation is where a Cluster says which version of its credentials
// is in use: a random text that tells nothing of them.
const CredentialsAnnotation = MeshGroup + "/credentials"

// ClusterObject is an attached cluster as its object declares it. It never holds
// a credential. The section of its provider is read by the room of that provider.
type ClusterObject struct {
	Provider   Provider  `json:"provider,omitempty"`
	Network    NetworkID `json:"network,omitempty"`
	Precedence int       `json:"precedence,omitempty"`
	// Aliases are further names by which proxies and tokens may name the cluster.
	Aliases []string `json:"aliases,omitempty"`
	// Limits bound what the cluster may make the hub keep; see Limits.
	Limits struct {
		Objects int    `json:"objects,omitempty"`
		Pages   int    `json:"pages,omitempty"`
		Bytes   string `json:"bytes,omitempty"` // a quantity
	} `json:"limits,omitzero"`
}

// NetworkObject declares a network and how it is entered from others.
type NetworkObject struct {
	CIDRs    []netip.Prefix   `json:"cidrs,omitempty"`
	Clusters []ClusterID      `json:"clusters,omitempty"`
	Gateways []NetworkGateway `json:"gateways,omitempty"`
}

// nodeLabel is the label by which Kubernetes names a node.
const nodeLabel = "kubernetes.io/hostname"

// NoNodes is why endpoints are not ordered by the label that names a node.
const NoNodes = "the hub does not know the nodes of endpoints: the label counts only where pods have it; use topology.kubernetes.io/zone"

// NodeLabels are the indexes of those labels of a failoverPriority that name a node.
func NodeLabels(priority []string) (at []int) {
	for i, label := range priority {
		if key, _, _ := strings.Cut(label, "="); key == nodeLabel {
			at = append(at, i)
		}
	}
	return at
}

// NetworkGateway is one entry of a network: by address, by hostname or by
// service.
type NetworkGateway struct {
	Address  string `json:"address,omitempty"`
	Hostname string `json:"hostname,omitempty"`
	Service  struct {
		Hostname  Hostname `json:"hostname,omitempty"`
		Namespace string   `json:"namespace,omitempty"`
	} `json:"service,omitzero"`
	Port     uint16      `json:"port,omitempty"`     // 0: DefaultGatewayPort, or what the service's label says
	Locality string      `json:"locality,omitempty"` // REGION/ZONE/SUBZONE; empty: that of the service's endpoints
	From     []NetworkID `json:"from,omitempty"`     // networks whose proxies may enter here; none: all
}

// ServiceBinding makes one service out of differently named ones.
type ServiceBinding struct {
	Hostname Hostname        `json:"hostname"`
	Services []BindingTarget `json:"services"`
	Ports    []Port          `json:"ports,omitempty"` // none: those of the bound services
	ExportTo []string        `json:"exportTo,omitempty"`
}

// BindingTarget is one of the services of a ServiceBinding.
type BindingTarget struct {
	Hostname  Hostname    `json:"hostname"`
	Namespace string      `json:"namespace,omitempty"` // empty: the binding's; where that has no such service, the one without namespace
	Clusters  []ClusterID `json:"clusters,omitempty"`
	Weight    *uint32     `json:"weight,omitempty"` // nil: 1
}

// OutboundMode says what happens to traffic for which the mesh knows no service.
type OutboundMode string

// The outbound modes.
const (
	AllowAny     OutboundMode = "ALLOW_ANY" // goes where the caller wanted; the default
	RegistryOnly OutboundMode = "REGISTRY_ONLY"
)

// PathNormalization says how proxies rewrite the paths of requests before they
// match and forward them.
type PathNormalization string

// The normalizations, as in Istio.
const (
	NormalizeDefault               PathNormalization = "DEFAULT" // BASE
	NormalizeNone                  PathNormalization = "NONE"
	NormalizeBase                  PathNormalization = "BASE"                     // RFC 3986: dot segments, needless percent-encoding, backslashes
	NormalizeMergeSlashes          PathNormalization = "MERGE_SLASHES"            // also //
	NormalizeDecodeAndMergeSlashes PathNormalization = "DECODE_AND_MERGE_SLASHES" // also %2F and %5C
)

// DefaultRootNamespace is where configuration for the whole mesh lies unless
// MeshSettings name another.
const DefaultRootNamespace = "istio-system"

// MeshSettings are the settings of the whole mesh.
type MeshSettings struct {
	RootNamespace string `json:"rootNamespace,omitempty"`
	TrustDomain   string `json:"trustDomain,omitempty"`
	// TrustDomainAliases are other names of the trust domain: a principal of one of them
	// means that of all.
	TrustDomainAliases    []string `json:"trustDomainAliases,omitempty"`
	OutboundTrafficPolicy struct {
		Mode OutboundMode `json:"mode,omitempty"`
	} `json:"outboundTrafficPolicy,omitzero"`
	PathNormalization struct {
		Normalization PathNormalization `json:"normalization,omitempty"`
	} `json:"pathNormalization,omitzero"`
	// ProtocolDetection has proxies detect HTTP on ports of which nothing says what they
	// speak; nil: they do.
	ProtocolDetection struct {
		Outbound *bool `json:"outbound,omitempty"`
		Inbound  *bool `json:"inbound,omitempty"`
	} `json:"protocolDetection,omitzero"`
	// ProtocolDetectionTimeout is how long the first bytes of a connection are waited for;
	// empty: DefaultDetectionTimeout.
	ProtocolDetectionTimeout string `json:"protocolDetectionTimeout,omitempty"`
	// GatewayNamespaces are those whose Services may become gateways of networks
	// by their labels; "*" is any. None: the root namespace.
	GatewayNamespaces []string `json:"gatewayNamespaces,omitempty"`
	// The namespaces to which services and rules are exported that do not say so themselves: as
	// in their own exportTo. None: all.
	DefaultServiceExportTo         []string `json:"defaultServiceExportTo,omitempty"`
	DefaultVirtualServiceExportTo  []string `json:"defaultVirtualServiceExportTo,omitempty"`
	DefaultDestinationRuleExportTo []string `json:"defaultDestinationRuleExportTo,omitempty"`
	// ClusterLocalHosts are served by the caller's own cluster only, and so are
	// those of Kubernetes itself; exceptions are not.
	ClusterLocalHosts      []string `json:"clusterLocalHosts,omitempty"`
	ClusterLocalExceptions []string `json:"clusterLocalExceptions,omitempty"`
	LocalityLoadBalancing  struct {
		// Enabled: true orders endpoints by place also without outlier detection, false does not even with it.
		Enabled          *bool            `json:"enabled,omitempty"`
		Distribute       []LocalityShares `json:"distribute,omitempty"`
		Failover         []RegionFailover `json:"failover,omitempty"`
		FailoverPriority []string         `json:"failoverPriority,omitempty"` // labels: KEY, or KEY=VALUE
	} `json:"localityLoadBalancing,omitzero"`
	// ExtensionProviders are servers that policies name.
	ExtensionProviders []ExtensionProvider `json:"extensionProviders,omitempty"`
	// DefaultProviders are the providers of workloads for which no Telemetry names any.
	DefaultProviders struct {
		AccessLogging []string `json:"accessLogging,omitempty"`
		Tracing       []string `json:"tracing,omitempty"`
	} `json:"defaultProviders,omitzero"`
	// EnvoyFilters says which EnvoyFilters take effect: those of the listed namespaces; "*" is
	// any. None: no namespace's.
	EnvoyFilters struct {
		Namespaces []string `json:"namespaces,omitempty"`
	} `json:"envoyFilters,omitzero"`
	// QUICListeners has gateways offer HTTP/3 where they end TLS.
	QUICListeners bool `json:"quicListeners,omitempty"`
	// Sources are the clusters whose custom resources are configuration of the mesh.
	Sources []ResourceSource `json:"sources,omitempty"`
	// The settings of Ingresses are those of Istio's mesh configuration.
	IngressControllerMode IngressMode `json:"ingressControllerMode,omitempty"` // empty: IngressOff
	IngressClass          string      `json:"ingressClass,omitempty"`
	IngressService        string      `json:"ingressService,omitempty"` // NAME in the root namespace, or NAMESPACE/NAME
	IngressSelector       string      `json:"ingressSelector,omitempty"`
	// IngressStatus has the hub write status.loadBalancer of Ingresses.
	IngressStatus bool `json:"ingressStatus,omitempty"`
}

// WorkloadNameLabel is the label by which a pod or a WorkloadEntry names its workload, as with Istio.
const WorkloadNameLabel = "service.istio.io/workload-name"

// GatewayLabel is the label by which the proxies of a Gateway of the Gateway API have its name.
const GatewayLabel = "gateway.networking.k8s.io/gateway-name"

// IsGatewayAPI reports whether these are group and kind of a Gateway of the Gateway API.
func IsGatewayAPI(group, kind string) bool {
	return Kind{group, kind} == GatewayAPI.Gateway
}

// IngressMode says which Ingresses of attached clusters are configuration.
type IngressMode string

// The ingress modes.
const (
	IngressOff     IngressMode = "OFF"     // none; the default
	IngressDefault IngressMode = "DEFAULT" // those of the hub's class, and those without a class
	IngressStrict  IngressMode = "STRICT"  // those of the hub's class
)

// ResourceSource says which custom resources of an attached cluster are configuration.
type ResourceSource struct {
	Cluster    ClusterID `json:"cluster"`
	Namespaces []string  `json:"namespaces,omitempty"` // "*": all, and objects without a namespace; none: nothing is read
	Kinds      []string  `json:"kinds,omitempty"`      // such as VirtualService.networking.istio.io; none: all that the hub knows
	Scope      string    `json:"scope,omitempty"`      // whose proxies the objects concern: ScopeCluster, ScopeMesh; empty: ScopeCluster
	Status     bool      `json:"status,omitempty"`     // the hub writes the status of the objects
}

// The scopes of custom resources: the proxies of their own cluster alone, or all proxies.
const (
	ScopeCluster = "CLUSTER"
	ScopeMesh    = "MESH"
)

// LocalityShares say which share of the requests from a locality goes to which. Localities
// are REGION/ZONE/SUBZONE; the last part may be *.
type LocalityShares struct {
	From string            `json:"from"`
	To   map[string]uint32 `json:"to"`
}

// RegionFailover says which region takes over from which.
type RegionFailover struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Root is the root namespace, with its default.
func (m *MeshSettings) Root() string {
	if m == nil || m.RootNamespace == "" {
		return DefaultRootNamespace
	}
	return m.RootNamespace
}

// Paths is how paths are normalized, with its default.
func (m *MeshSettings) Paths() PathNormalization {
	if m == nil || m.PathNormalization.Normalization == "" || m.PathNormalization.Normalization == NormalizeDefault {
		return NormalizeBase
	}
	return m.PathNormalization.Normalization
}

// AllowsGateways reports whether gateways of networks may be in the namespace: Services
// by their labels, and routers that serve.
func (m *MeshSettings) AllowsGateways(namespace string) bool {
	if m == nil || len(m.GatewayNamespaces) == 0 {
		return namespace == m.Root()
	}
	return slices.Contains(m.GatewayNamespaces, namespace) || slices.Contains(m.GatewayNamespaces, "*")
}

// WantsQUIC reports whether gateways offer HTTP/3.
func (m *MeshSettings) WantsQUIC() bool { return m != nil && m.QUICListeners }

// AllowsEnvoyFilters reports whether EnvoyFilters of the namespace take effect.
func (m *MeshSettings) AllowsEnvoyFilters(namespace string) bool {
	return m != nil && (slices.Contains(m.EnvoyFilters.Namespaces, namespace) || slices.Contains(m.EnvoyFilters.Namespaces, "*"))
}

// Mesh returns the settings of the whole mesh; nil where there are none.
func (s *Snapshot) Mesh() *MeshSettings { return meshOf(s.Object(MeshSettingsKey)) }

// Mesh is Snapshot.Mesh, noted.
func (r *Reader) Mesh() *MeshSettings { return meshOf(r.Object(MeshSettingsKey)) }

func meshOf(o *Object, ok bool) *MeshSettings {
	if !ok {
		return nil
	}
	m, _ := o.Spec.(*MeshSettings)
	return m
}

// GatewayHealth is what one hub found of gateways that were probed from a network:
// those that it found reachable, or those that it did not, each with the time
// since when.
type GatewayHealth struct {
	Observer  NetworkID                    `json:"observer"`
	Reachable bool                         `json:"reachable,omitempty"`
	Since     map[netip.AddrPort]time.Time `json:"since,omitempty"`
}

// WorkloadHealth is what the proxy of a workload reported last, with what it proved. The object has a lease: it
// expires when the proxy disconnects from all hubs.
type WorkloadHealth struct {
	Node      string     `json:"node"`    // ID of the proxy
	Account   string     `json:"account"` // NAMESPACE/NAME
	Address   netip.Addr `json:"address"`
	Unhealthy string     `json:"unhealthy,omitempty"` // the reason; empty: it is healthy
}

// HubPresence exists while the hub that its object is named after runs. The object has
// a lease: it expires when the hub stops.
type HubPresence struct{}

// Allocation is the automatic VIPs of a service, in an object of the service's
// namespace that is named like its hostname.
type Allocation struct {
	Addresses []netip.Addr `json:"addresses"`
}
