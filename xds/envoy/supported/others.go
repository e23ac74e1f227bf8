package supported

import "isthmus.dev/isthmus/federation"

// Kinds for the hub alone.
var (
	_ = add(row{kind: federation.AllocationKind})
	_ = add(row{kind: federation.GatewayHealthKind})
	_ = add(row{kind: federation.HubPresenceKind})
	_ = add(row{kind: federation.WorkloadHealthKind})
	_ = add(row{kind: federation.ConfigMapKind})
	_ = add(row{kind: federation.NamespaceKind})
	_ = add(row{kind: federation.BackendTLSKind})
	_ = add(row{kind: federation.ClientCertificateKind})
)
