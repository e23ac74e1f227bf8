package config

import (
	"encoding/json"
	"fmt"

	"isthmus.dev/isthmus/federation"
)

// HubPresenceKey names the object that exists while the hub, one of several over one
// store, runs.
func HubPresenceKey(hub string) federation.ObjectKey {
	return federation.ObjectKey{Group: federation.MeshGroup, Kind: federation.HubPresenceKind.Name, Name: hub}
}

// NewHubPresence is that object.
func NewHubPresence(hub string) (*Object, error) {
	key := HubPresenceKey(hub)
	manifest, err := json.Marshal(map[string]any{
		"apiVersion": allocationVersion, "kind": key.Kind,
		"metadata": map[string]string{"name": key.Name},
	})
	if err != nil {
		return nil, fmt.Errorf("writing %s: %w", key, err)
	}
	return &Object{Key: key, APIVersion: allocationVersion, Manifest: manifest}, nil
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
