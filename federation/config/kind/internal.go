package kind

import (
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
)

// Internal reports whether objects of the kind are for the hubs alone. Such kinds have no
// schema, because users neither apply nor see their objects.
func Internal(k federation.Kind) bool {
	r := rows[k]
	return r != nil && r.internal
}

// IsRead reports whether readers of a snapshot see objects of the kind.
func IsRead(k federation.Kind) bool {
	r := rows[k]
	return r == nil || !r.internal || r.read
}

var _ = add(of[federation.Allocation]{
	kind:     federation.AllocationKind,
	internal: true,
	translate: func(_ Decoded, s *federation.Allocation) Meaning {
		return Meaning{Addresses: s.Addresses, Hidden: true}
	},
})

var _ = add(of[federation.GatewayHealth]{kind: federation.GatewayHealthKind, internal: true})

var _ = add(of[federation.WorkloadHealth]{kind: federation.WorkloadHealthKind, internal: true})

var _ = add(of[federation.HubPresence]{kind: federation.HubPresenceKind, internal: true})

var _ = add(of[federation.ConfigMap]{kind: federation.ConfigMapKind, internal: true, read: true})

var _ = add(of[federation.Namespace]{kind: federation.NamespaceKind, internal: true, read: true})

var _ = add(of[federation.ClientCertificate]{kind: federation.ClientCertificateKind, internal: true, read: true})

var _ = add(of[networking.DestinationRule]{
	kind: federation.BackendTLSKind, internal: true, read: true,
	names: func(d Decoded, s *networking.DestinationRule) []string { return d.hosts(s.GetHost()) },
})
