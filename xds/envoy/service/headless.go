package service

import (
	"slices"
	"strings"

	"isthmus.dev/isthmus/federation"
)

// Callers of a headless service dial its pods. Where a port speaks HTTP, the
// listener of all services of that port catches the connection and the route finds
// the service; any other port has a listener at the address of each pod, as with
// Istio. What the listener catches goes to the service's cluster, and from there to
// the address that the caller dialed.

// IsHeadless reports whether callers of the service choose among its pods.
func IsHeadless(s *federation.Service) bool {
	return s.Resolution == federation.Passthrough && !s.MeshExternal
}

// callersDialPods reports whether a headless service has no addresses but those of its
// pods. A ServiceEntry of the mesh with the resolution NONE may name addresses, and
// these are dialed.
func callersDialPods(s *federation.Service) bool { return IsHeadless(s) && HasPods(s) }

// PodDomains are the names of the pods of a headless service: POD.HOST.
func PodDomains(s *federation.Service) []string {
	host := string(s.Key.Hostname)
	if strings.HasPrefix(host, "*") || !callersDialPods(s) {
		return nil
	}
	return []string{"*." + host}
}

// IsUnlisted reports whether nothing lists the addresses of the service: objects of
// configuration alone declare it, and its callers know where it is (resolution NONE).
func IsUnlisted(s *federation.Service) bool {
	for key := range s.Shards.All() {
		if !key.Provider.OfConfiguration() {
			return false
		}
	}
	return s.Resolution == federation.Passthrough
}

// HasPods reports whether a registry of workloads has the service; what ServiceEntries
// alone declare has no names for its instances.
func HasPods(s *federation.Service) bool {
	return slices.ContainsFunc(s.Endpoints, func(g federation.ShardEndpoints) bool { return !g.Shard.Provider.OfConfiguration() })
}
