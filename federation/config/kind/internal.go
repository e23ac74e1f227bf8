package kind

import "isthmus.dev/isthmus/federation"

// Internal reports whether objects of the kind are for the hubs alone. Such kinds have no
// schema, because users neither apply nor see their objects.
func Internal(k federation.Kind) bool {
	r := rows[k]
	return r != nil && r.internal
}

var _ = add(of[federation.Allocation]{
	kind:     federation.AllocationKind,
	internal: true,
	translate: func(_ Decoded, s *federation.Allocation) Meaning {
		return Meaning{Addresses: s.Addresses, Hidden: true}
	},
})

var _ = add(of[federation.GatewayHealth]{kind: federation.GatewayHealthKind, internal: true})

var _ = add(of[federation.HubPresence]{kind: federation.HubPresenceKind, internal: true})
