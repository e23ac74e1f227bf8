package kind

import "isthmus.dev/isthmus/federation"

// Kinds that hubs keep for themselves (federation.Kind.Internal). They have no schema,
// because nobody applies their objects.

var _ = add(of[federation.Allocation]{
	kind: federation.AllocationKind,
	translate: func(_ Decoded, s *federation.Allocation) Meaning {
		return Meaning{Addresses: s.Addresses, Hidden: true}
	},
})

var _ = add(of[federation.GatewayHealth]{kind: federation.GatewayHealthKind})

var _ = add(of[federation.HubPresence]{kind: federation.HubPresenceKind})
