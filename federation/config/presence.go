package config

import "isthmus.dev/isthmus/federation"

// HubPresenceKey names the object that exists while the hub, one of several over one
// store, runs.
func HubPresenceKey(hub string) federation.ObjectKey {
	return federation.ObjectKey{Group: federation.MeshGroup, Kind: federation.HubPresenceKind.Name, Name: hub}
}

// NewHubPresence is that object.
func NewHubPresence(hub string) (*Object, error) {
	return newInternal(HubPresenceKey(hub), nil)
}

// OtherHubs is how many hubs on the store run besides this one.
func (s *State) OtherHubs(hub string) (n int) {
	for o := range s.ObjectsOf(federation.HubPresenceKind) {
		if o.Key.Name != hub {
			n++
		}
	}
	return n
}
