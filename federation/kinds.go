package federation

// The API groups of kinds that are not the hub's own.
const (
	networkingGroup = "networking.istio.io"
	securityGroup   = "security.istio.io"
	gatewayAPIGroup = "gateway.networking.k8s.io"
	ingressGroup    = "networking.k8s.io"
)

// The kinds of Istio. What the hub knows of each is its row in federation/config/kind.
var (
	DestinationRuleKind = Kind{networkingGroup, "DestinationRule"}
	EnvoyFilterKind     = Kind{networkingGroup, "EnvoyFilter"}
	GatewayKind         = Kind{networkingGroup, "Gateway"}
	ProxyConfigKind     = Kind{networkingGroup, "ProxyConfig"}
	ServiceEntryKind    = Kind{networkingGroup, "ServiceEntry"}
	SidecarKind         = Kind{networkingGroup, "Sidecar"}
	VirtualServiceKind  = Kind{networkingGroup, "VirtualService"}
	WorkloadEntryKind   = Kind{networkingGroup, "WorkloadEntry"}
	WorkloadGroupKind   = Kind{networkingGroup, "WorkloadGroup"}

	AuthorizationPolicyKind   = Kind{securityGroup, "AuthorizationPolicy"}
	PeerAuthenticationKind    = Kind{securityGroup, "PeerAuthentication"}
	RequestAuthenticationKind = Kind{securityGroup, "RequestAuthentication"}

	TelemetryKind = Kind{"telemetry.istio.io", "Telemetry"}
)

// GatewayAPI has the kinds of the Gateway API.
var GatewayAPI = struct {
	BackendTLSPolicy, Gateway, GatewayClass, ListenerSet, ReferenceGrant Kind
	GRPCRoute, HTTPRoute, TCPRoute, TLSRoute, UDPRoute                   Kind
}{
	BackendTLSPolicy: Kind{gatewayAPIGroup, "BackendTLSPolicy"},
	Gateway:          Kind{gatewayAPIGroup, "Gateway"},
	GatewayClass:     Kind{gatewayAPIGroup, "GatewayClass"},
	ListenerSet:      Kind{gatewayAPIGroup, "ListenerSet"},
	ReferenceGrant:   Kind{gatewayAPIGroup, "ReferenceGrant"},
	GRPCRoute:        Kind{gatewayAPIGroup, "GRPCRoute"},
	HTTPRoute:        Kind{gatewayAPIGroup, "HTTPRoute"},
	TCPRoute:         Kind{gatewayAPIGroup, "TCPRoute"},
	TLSRoute:         Kind{gatewayAPIGroup, "TLSRoute"},
	UDPRoute:         Kind{gatewayAPIGroup, "UDPRoute"},
}

// The kinds of Kubernetes itself of which the hub reads objects.
var (
	IngressKind      = Kind{ingressGroup, "Ingress"}
	IngressClassKind = Kind{ingressGroup, "IngressClass"}
)

// Key names an object of the kind.
func (k Kind) Key(namespace, name string) ObjectKey {
	return ObjectKey{Group: k.Group, Kind: k.Name, Namespace: namespace, Name: name}
}
