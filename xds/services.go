package xds

import (
	"slices"
	"sync"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/envoy"
)

// serviceIndex finds the names that were built from a service. Only its group changes
// it, under the lock, and reads it without; everybody else reads it with the lock, and
// so never waits for a build.
type serviceIndex struct {
	mu    sync.Mutex
	names map[federation.ServiceKey]map[string]federation.Reason
}

// replace makes the name depend on the services now and no more on old.
func (x *serviceIndex) replace(name string, old, now map[federation.ServiceKey]federation.Reason) {
	if len(old)+len(now) == 0 {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for key := range old {
		if _, stays := now[key]; !stays {
			if delete(x.names[key], name); len(x.names[key]) == 0 {
				delete(x.names, key)
			}
		}
	}
	for key, reasons := range now {
		if old[key] == reasons {
			continue
		}
		if x.names[key] == nil {
			x.names[key] = map[string]federation.Reason{}
		}
		x.names[key][name] = reasons
	}
}

// built returns the names that were built from the service.
func (x *serviceIndex) built(key federation.ServiceKey) []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	found := make([]string, 0, len(x.names[key]))
	for name := range x.names[key] {
		found = append(found, name)
	}
	return found
}

// builtForServices are the clusters and endpoints of the services to which the object
// contributes. Builders read these services and not the object itself.
func (s *Server) builtForServices(latest *federation.Snapshot, o *federation.Object) []fleet.Built {
	services := latest.ServicesFrom(o)
	if len(services) == 0 {
		return nil
	}
	var all []fleet.Built
	for _, g := range s.serviceGroups() {
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
func (s *Server) serviceGroups() []*group {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []*group
	for key, g := range s.groups {
		if key.kind == envoy.ClusterType || key.kind == envoy.EndpointType {
			found = append(found, g.group)
		}
	}
	return found
}

// numbersFor are the resources that exist and stand for the service.
func (g *group) numbersFor(latest *federation.Snapshot, svc *federation.Service, names *nameTable) []uint32 {
	built := slices.DeleteFunc(g.index.services.built(svc.Key), func(name string) bool { return !envoy.StandsFor(name, g.facet, svc, latest) })
	return names.held(g.index.objects.present(built))
}
