package federation

import (
	"iter"
	"slices"
)

// Contribution is how the objects of a kind become services or parts of services.
type Contribution struct {
	services func(*Snapshot, *Object) []*Service
	// objects yields objects of the kind that may contribute to the service.
	objects func(*Snapshot, Kind, *Service) iter.Seq[*Object]
}

// The ways of contributing.
var (
	DeclaresServices = Contribution{declaredBy, declaring}
	DeclaresWorkload = Contribution{selectingServices, selected}
	ExportsService   = Contribution{exportedBy, declaring}
	DrainsServices   = Contribution{drainedBy, draining}
)

// contributors has the kinds whose objects contribute; nothing is added after the program's start.
var contributors = map[Kind]Contribution{}

// Contributes makes known how objects of the kind contribute. The row of a kind, in
// federation/config/kind, calls it at the program's start.
func Contributes(kind Kind, how Contribution) { contributors[kind] = how }

// ServicesFrom returns the services to which the object contributes: those that it
// declares, or those that select the workload that it declares.
func ServicesFrom(s *Snapshot, o *Object) []*Service {
	if c, contributes := contributors[o.Key.Of()]; contributes {
		return c.services(s, o)
	}
	return nil
}

func declaredBy(s *Snapshot, o *Object) []*Service {
	var found []*Service
	for _, name := range o.Names {
		svc, ok := s.Service(ServiceKey{Hostname: Hostname(name), Namespace: o.Key.Namespace})
		if ok && isDeclared(svc) {
			found = append(found, svc)
		}
	}
	return found
}

// isDeclared reports whether an object of the configuration declares the service.
func isDeclared(s *Service) bool {
	return slices.ContainsFunc(s.Shards, func(k keyedShard) bool { return k.Key.Provider.OfConfiguration() })
}

// exportedBy returns the exported service to which the export contributes.
func exportedBy(s *Snapshot, o *Object) []*Service {
	svc, ok := s.Service(ClusterSetService(o.Key))
	if !ok {
		return nil
	}
	return []*Service{svc}
}

// drainedBy returns the services of which the Drain covers endpoints.
func drainedBy(s *Snapshot, o *Object) []*Service {
	var found []*Service
	for svc := range s.Services().All() {
		if slices.ContainsFunc(svc.Drains, func(d ServiceDrain) bool { return d.Drain == o.Key }) {
			found = append(found, svc)
		}
	}
	return found
}

// draining yields the Drains that cover endpoints of the service.
func draining(s *Snapshot, _ Kind, svc *Service) iter.Seq[*Object] {
	return func(yield func(*Object) bool) {
		for _, d := range svc.Drains {
			if o, ok := s.Object(d.Drain); ok && !yield(o) {
				return
			}
		}
	}
}

// declaring yields the objects that name the service.
func declaring(s *Snapshot, kind Kind, svc *Service) iter.Seq[*Object] {
	return s.Objects().Named(kind, string(svc.Key.Hostname))
}

// selected yields the objects of the service's namespace, if it selects any.
func selected(s *Snapshot, kind Kind, svc *Service) iter.Seq[*Object] {
	if !slices.ContainsFunc(svc.Shards, func(k keyedShard) bool { return k.Shard.Selector.active() }) {
		return func(func(*Object) bool) {}
	}
	return s.Objects().In(kind, svc.Key.Namespace)
}

// selectingServices returns the services that select the workload of the object.
func selectingServices(s *Snapshot, o *Object) []*Service {
	key := WorkloadKey{Namespace: o.Key.Namespace, Name: o.Key.Name}
	var found []*Service
	w := registeredWorkload(s, key)
	if w == nil {
		return nil
	}
	for _, p := range []Provider{External, ""} {
		s.workloads.selectors.WalkPrefix(selectorPrefix(key.Namespace, p), func(_ string, at ServiceKey) bool {
			svc, ok := s.Service(at)
			if ok && !slices.Contains(found, svc) && svc.selects(w) {
				found = append(found, svc)
			}
			return false
		})
	}
	return found
}

func (s *Service) selects(w *Workload) bool {
	return slices.ContainsFunc(s.Shards, func(k keyedShard) bool { return k.Shard.Selector.selects(w) })
}

// registeredWorkload finds the workload among those of the configuration.
func registeredWorkload(s *Snapshot, key WorkloadKey) *Workload {
	var found *Workload
	prefix := selectorPrefix(key.Namespace, External)
	s.workloads.namespaces.WalkPrefix(prefix, func(at string, _ int) bool {
		found, _ = s.Workload(ShardKey{Cluster: ClusterID(at[len(prefix):]), Provider: External}, key)
		return found != nil
	})
	return found
}

// ObjectsBehind returns the objects of the configuration that declare the service or one
// of its workloads, in any order: those of which ServicesFrom returns it.
func ObjectsBehind(s *Snapshot, svc *Service) []ObjectKey {
	var found []ObjectKey
	if !svc.Key.Hostname.IsClusterSet() && !isDeclared(svc) {
		return nil
	}
	for kind, c := range contributors {
		for o := range c.objects(s, kind, svc) {
			if slices.Contains(c.services(s, o), svc) {
				found = append(found, o.Key)
			}
		}
	}
	return found
}
