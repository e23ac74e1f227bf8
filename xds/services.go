package xds

import (
	"slices"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/envoy"
)

// builtForServices are the clusters and endpoints of the services to which the object
// contributes. Builders read these services and not the object itself.
func (s *Server) builtForServices(latest *federation.Snapshot, o *federation.Object) []fleet.Built {
	services := federation.ServicesFrom(latest, o)
	if len(services) == 0 {
		return nil
	}
	var all []fleet.Built
	for _, g := range serviceGroups(s) {
		var numbers []uint32
		for _, svc := range services {
			numbers = append(numbers, g.numbersFor(latest, svc, s.names)...)
		}
		if len(numbers) > 0 {
			all = append(all, fleet.Built{Group: g.id, Numbers: numbers})
		}
	}
	return all
}

// serviceGroups are the groups that build clusters and endpoints.
func serviceGroups(of *Server) []*group {
	of.mu.Lock()
	defer of.mu.Unlock()
	var found []*group
	for key, g := range of.groups {
		if key.kind.Has(envoy.Destinations) {
			found = append(found, g.group)
		}
	}
	return found
}

// numbersFor are the resources that exist and belong to the service.
func (g *group) numbersFor(latest *federation.Snapshot, svc *federation.Service, names *nameTable) []uint32 {
	built := slices.DeleteFunc(g.index.OfService(svc.Key), func(name string) bool { return !envoy.StandsFor(name, g.facet, svc, latest) })
	return names.held(g.absent.existing(built))
}
