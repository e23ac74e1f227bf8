package config

import (
	"isthmus.dev/isthmus/federation"
	networking "istio.io/api/networking/v1"
	networkingalpha "istio.io/api/networking/v1alpha3"
	networkingbeta "istio.io/api/networking/v1beta1"
	security "istio.io/api/security/v1"
	telemetry "istio.io/api/telemetry/v1"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
	multicluster "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// The API groups of the kinds that are not the hub's own.
const (
	networkingGroup   = "networking.istio.io"
	securityGroup     = "security.istio.io"
	telemetryGroup    = "telemetry.istio.io"
	gatewayGroup      = "gateway.networking.k8s.io"
	multiclusterGroup = "multicluster.x-k8s.io"
)

// Kinds of which the External registry is made.
var (
	ServiceEntryKind  = federation.Kind{Group: networkingGroup, Name: "ServiceEntry"}  // *networking.ServiceEntry
	WorkloadEntryKind = federation.Kind{Group: networkingGroup, Name: "WorkloadEntry"} // *networking.WorkloadEntry
	gatewayKind       = federation.Kind{Group: networkingGroup, Name: "Gateway"}
)

// newSpec makes an empty spec of the kind's own Go type: a protobuf message for
// the kinds of Istio, the type of the kind's module for those of Kubernetes SIGs,
// and a value of the federation for the hub's own. Nil: nobody knows the kind.
func newSpec(kind federation.Kind) any {
	switch kind.Group {
	case networkingGroup:
		return newNetworking(kind.Name)
	case securityGroup, telemetryGroup:
		return newPolicy(kind)
	case gatewayGroup:
		return newGateway(kind.Name)
	case multiclusterGroup:
		switch kind.Name {
		case "ServiceExport":
			return &multicluster.ServiceExportSpec{}
		case "ServiceImport":
			return &multicluster.ServiceImportSpec{}
		}
	case federation.MeshGroup:
		return newMesh(kind)
	}
	return nil
}

func newNetworking(kind string) any {
	switch kind {
	case "VirtualService":
		return &networking.VirtualService{}
	case "DestinationRule":
		return &networking.DestinationRule{}
	case "Gateway":
		return &networking.Gateway{}
	case "ServiceEntry":
		return &networking.ServiceEntry{}
	case "WorkloadEntry":
		return &networking.WorkloadEntry{}
	case "WorkloadGroup":
		return &networking.WorkloadGroup{}
	case "Sidecar":
		return &networking.Sidecar{}
	case "EnvoyFilter":
		return &networkingalpha.EnvoyFilter{}
	case "ProxyConfig":
		return &networkingbeta.ProxyConfig{}
	}
	return nil
}

func newPolicy(kind federation.Kind) any {
	switch kind {
	case federation.Kind{Group: securityGroup, Name: "PeerAuthentication"}:
		return &security.PeerAuthentication{}
	case federation.Kind{Group: securityGroup, Name: "AuthorizationPolicy"}:
		return &security.AuthorizationPolicy{}
	case federation.Kind{Group: securityGroup, Name: "RequestAuthentication"}:
		return &security.RequestAuthentication{}
	case federation.Kind{Group: telemetryGroup, Name: "Telemetry"}:
		return &telemetry.Telemetry{}
	}
	return nil
}

func newGateway(kind string) any {
	switch kind {
	case "GatewayClass":
		return &gateway.GatewayClassSpec{}
	case "Gateway":
		return &gateway.GatewaySpec{}
	case "HTTPRoute":
		return &gateway.HTTPRouteSpec{}
	case "GRPCRoute":
		return &gateway.GRPCRouteSpec{}
	case "TLSRoute":
		return &gateway.TLSRouteSpec{}
	case "TCPRoute":
		return &gateway.TCPRouteSpec{}
	case "UDPRoute":
		return &gateway.UDPRouteSpec{}
	case "ReferenceGrant":
		return &gateway.ReferenceGrantSpec{}
	case "BackendTLSPolicy":
		return &gateway.BackendTLSPolicySpec{}
	case "ListenerSet":
		return &gateway.ListenerSetSpec{}
	}
	return nil
}

func newMesh(kind federation.Kind) any {
	switch kind {
	case federation.ClusterKind:
		return &federation.ClusterObject{}
	case federation.NetworkKind:
		return &federation.NetworkObject{}
	case federation.ServiceBindingKind:
		return &federation.ServiceBinding{}
	case federation.MeshSettingsKind:
		return &federation.MeshSettings{}
	case federation.AllocationKind:
		return &federation.Allocation{}
	case federation.GatewayHealthKind:
		return &federation.GatewayHealth{}
	case federation.HubPresenceKind:
		return &federation.HubPresence{}
	}
	return nil
}
