package gatewayapi

import (
	"slices"
	"sync"

	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"isthmus.dev/isthmus/federation"
)

// statuses are those of all objects, for readers beside Run.
type statuses struct {
	mu      sync.Mutex
	of      map[federation.ObjectKey]Status
	changed []federation.ObjectKey // since say was called; nothing as long as it is nil
	say     func([]federation.ObjectKey)
}

// Statuses is how objects are, as of the last snapshot that Run applied.
type Statuses struct{ kept *statuses }

// Statuses are those of the objects that the source translates. It calls changed, which may
// be nil, with those that may have changed.
func (s *Source) Statuses(changed func([]federation.ObjectKey)) Statuses {
	s.kept.mu.Lock()
	defer s.kept.mu.Unlock()
	s.kept.say = changed
	return Statuses{&s.kept}
}

// Of is the status of an object; false: it is not known.
func (s Statuses) Of(key federation.ObjectKey) (Status, bool) {
	s.kept.mu.Lock()
	defer s.kept.mu.Unlock()
	status, known := s.kept.of[key]
	return status, known
}

func (s *statuses) set(key federation.ObjectKey, exists bool, status Status) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[federation.ObjectKey]Status{}
	}
	if s.say != nil {
		s.changed = append(s.changed, key)
	}
	if exists {
		s.of[key] = status
	} else {
		delete(s.of, key)
	}
}

func (s *statuses) tell(changed bool) {
	if s == nil || !changed {
		return
	}
	s.mu.Lock()
	say, keys := s.say, s.changed
	s.changed = nil
	s.mu.Unlock()
	if say != nil {
		say(keys)
	}
}

// Parents are those that references of a route mean and that the hub serves. What it says about a Gateway or a
// ListenerSet, of gives.
func Parents(route federation.ObjectKey, refs []gateway.ParentReference,
	of func(federation.ObjectKey) (Status, bool),
) (all []ParentStatus) {
	at := slices.IndexFunc(routeKinds, func(k routeKind) bool { return k.Kind == route.Of() })
	if at < 0 {
		return nil
	}
	v := &routeView{Object: &federation.Object{Key: route}, routeKind: &routeKinds[at]}
	for _, ref := range refs {
		if _, is := v.serviceOf(ref); is {
			all = append(all, ParentStatus{Ref: ref, Controller: string(controllers[0])})
			continue
		}
		key, is := v.parentKey(ref)
		if !is {
			continue
		}
		if status, known := of(key); known && status.Controller != "" {
			all = append(all, ParentStatus{Ref: ref, Controller: status.Controller})
		}
	}
	return all
}

// Routes are the kinds of routes that have a status.
func Routes() []federation.Kind { return routesOf(func(routeKind) bool { return true }) }

// Translates reports whether objects of the kind have a status among those of a Source.
func Translates(kind federation.Kind) bool { return slices.Contains(unitKinds, kind) }

// IsController reports whether the hub is the controller of that name.
func IsController(name string) bool {
	return slices.Contains(controllers, gateway.GatewayController(name))
}
