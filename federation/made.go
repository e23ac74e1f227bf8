package federation

import "slices"

// ServicesFrom returns the services to which the object contributes: of a ServiceEntry
// and a ServiceBinding those of its hosts, of a WorkloadEntry those that select it.
func (s *Snapshot) ServicesFrom(o *Object) []*Service {
	switch o.Key.Kind {
	case "ServiceEntry", "ServiceBinding":
		return s.declaredBy(o)
	case "WorkloadEntry":
		return s.selecting(WorkloadKey{Namespace: o.Key.Namespace, Name: o.Key.Name})
	}
	return nil
}

func (s *Snapshot) declaredBy(o *Object) []*Service {
	var found []*Service
	for _, name := range o.Names {
		svc, ok := s.Service(ServiceKey{Hostname: Hostname(name), Namespace: o.Key.Namespace})
		if ok && slices.ContainsFunc(svc.Shards, func(k keyedShard) bool { return k.Key.Provider == External }) {
			found = append(found, svc)
		}
	}
	return found
}

// selecting returns the services that select a workload of the configuration.
func (s *Snapshot) selecting(key WorkloadKey) []*Service {
	var found []*Service
	w := s.registeredWorkload(key)
	if w == nil {
		return nil
	}
	for _, p := range []Provider{External, ""} {
		s.selectors.WalkPrefix(selectorPrefix(key.Namespace, p), func(_ string, at ServiceKey) bool {
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
func (s *Snapshot) registeredWorkload(key WorkloadKey) *Workload {
	var found *Workload
	prefix := selectorPrefix(key.Namespace, External)
	s.homes.WalkPrefix(prefix, func(at string, _ int) bool {
		found, _ = s.Workload(ShardKey{Cluster: ClusterID(at[len(prefix):]), Provider: External}, key)
		return found != nil
	})
	return found
}

// ObjectsBehind returns the objects of the configuration that declare the service or one
// of its workloads: those of which ServicesFrom returns it.
func (s *Snapshot) ObjectsBehind(svc *Service) []ObjectKey {
	var found []ObjectKey
	if !slices.ContainsFunc(svc.Shards, func(k keyedShard) bool { return k.Key.Provider == External }) {
		return nil
	}
	for _, kind := range []Kind{{Group: "networking.istio.io", Name: "ServiceEntry"}, ServiceBindingKind} {
		for o := range s.ObjectsNamed(kind, string(svc.Key.Hostname)) {
			if slices.Contains(s.ServicesFrom(o), svc) {
				found = append(found, o.Key)
			}
		}
	}
	if !slices.ContainsFunc(svc.Shards, func(k keyedShard) bool { return k.Shard.Selector.active() }) {
		return found
	}
	for o := range s.ObjectsIn(Kind{Group: "networking.istio.io", Name: "WorkloadEntry"}, svc.Key.Namespace) {
		if slices.Contains(s.ServicesFrom(o), svc) {
			found = append(found, o.Key)
		}
	}
	return found
}
