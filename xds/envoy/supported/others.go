package supported

import "isthmus.dev/isthmus/federation"

func ofNetworking(name string) federation.Kind {
	return federation.Kind{Group: "networking.istio.io", Name: name}
}

func ofGatewayAPI(name string) federation.Kind {
	return federation.Kind{Group: "gateway.networking.k8s.io", Name: name}
}

// Kinds that the registries and the hub read.
var (
	_ = add(row{kind: federation.ServiceBindingKind})
	_ = add(row{kind: federation.MeshSettingsKind})
	_ = add(row{kind: federation.ClusterKind, selects: true})
	_ = add(row{kind: federation.NetworkKind, selects: true})
	_ = add(row{kind: ofGatewayAPI("Gateway"), derived: true})
	_ = add(row{kind: ofGatewayAPI("GatewayClass"), derived: true})
	_ = add(row{kind: ofGatewayAPI("HTTPRoute"), derived: true})
	_ = add(row{kind: ofGatewayAPI("TCPRoute"), derived: true})
	_ = add(row{kind: ofGatewayAPI("UDPRoute"), derived: true})
	_ = add(row{kind: ofGatewayAPI("TLSRoute"), derived: true})
	_ = add(row{kind: ofGatewayAPI("GRPCRoute"), derived: true})
	_ = add(row{kind: ofGatewayAPI("ReferenceGrant"), derived: true})
	_ = add(row{kind: ofGatewayAPI("ListenerSet"), derived: true})
	_ = add(row{kind: ofGatewayAPI("BackendTLSPolicy"), derived: true})
	_ = add(row{kind: federation.DrainKind})
	_ = add(row{kind: federation.ServiceExportKind})
	_ = add(row{kind: federation.AllocationKind})
	_ = add(row{kind: federation.GatewayHealthKind})
	_ = add(row{kind: federation.HubPresenceKind})
	_ = add(row{kind: federation.ConfigMapKind})
	_ = add(row{kind: federation.NamespaceKind})
	_ = add(row{kind: federation.BackendTLSKind})
)

// A kind without an effect.
var _ = add(row{
	kind: federation.ServiceImportKind,
	idle: "the hub derives imports from the ServiceExports of clusters: every proxy knows the names of exported services",
})
