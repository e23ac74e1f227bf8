package xds

import (
	"cmp"
	"slices"
	"sync"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
)

// reasons are the builders' reports on objects and services that are not, or only
// partly, in the resources of connected proxies. Groups keep them up to date as they
// build, so that reading them does not slow down groups.
type reasons struct {
	mu      sync.Mutex
	of      map[any]map[reason]*reasonCount // by ObjectKey or ServiceKey
	counted func(code string, change int)
	told    func()       // that any reasons changed
	moved   map[any]bool // the subjects whose reasons changed since somebody asked; nil: nobody did
}

type reason struct{ code, message string }

// reasonCount is how often a reason was given, and with which objects.
type reasonCount struct {
	resources int // in how many
	related   []federation.ObjectKey
}

// maxReasons bounds the reasons that are shown of one object.
const maxReasons = 20

func newReasons(counted func(string, int), told func()) *reasons {
	if counted == nil {
		counted = func(string, int) {}
	}
	return &reasons{of: map[any]map[reason]*reasonCount{}, counted: counted, told: told}
}

// subjects are what a reason is about.
func subjects(r envoy.Reason) []any {
	var all []any
	if r.Cause != (federation.ObjectKey{}) {
		all = append(all, r.Cause)
	}
	if r.Service != (federation.ServiceKey{}) {
		all = append(all, r.Service)
	}
	return all
}

// replace records that a resource has other reasons now.
func (s *reasons) replace(before, now []envoy.Reason) {
	before, now = withoutCommon(before, now)
	if len(before)+len(now) == 0 {
		return
	}
	defer s.told()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range now {
		s.add(r, 1)
	}
	for _, r := range before {
		s.add(r, -1)
	}
}

// withoutCommon excludes what both begin with and what both end with: a builder gives its
// reasons in the same order each time, and one change seldom adds more than a few to the thousands of a
// route configuration.
func withoutCommon(before, now []envoy.Reason) (a, b []envoy.Reason) {
	for len(before) > 0 && len(now) > 0 && saysTheSame(before[0], now[0]) {
		before, now = before[1:], now[1:]
	}
	for len(before) > 0 && len(now) > 0 && saysTheSame(before[len(before)-1], now[len(now)-1]) {
		before, now = before[:len(before)-1], now[:len(now)-1]
	}
	return before, now
}

func saysTheSame(a, b envoy.Reason) bool {
	return a.Code == b.Code && a.Message == b.Message && a.Cause == b.Cause && a.Service == b.Service
}

func (s *reasons) add(r envoy.Reason, change int) {
	one := reason{r.Code, r.Message}
	for _, subject := range subjects(r) {
		known := s.of[subject]
		if known == nil {
			known = map[reason]*reasonCount{}
			s.of[subject] = known
		}
		of := known[one]
		if of == nil {
			of = &reasonCount{related: r.Related}
			known[one] = of
			s.count(r.Code, 1)
			s.move(subject)
		}
		of.resources += change
		if of.resources == 0 {
			s.count(r.Code, -1)
			s.move(subject)
			delete(known, one)
			if len(known) == 0 {
				delete(s.of, subject)
			}
		}
	}
}

// move notes that the reasons of a subject changed; the caller holds mu.
func (s *reasons) move(subject any) {
	if s.moved != nil {
		s.moved[subject] = true
	}
}

// count counts what is not right. That a patch matches is right.
func (s *reasons) count(code string, change int) {
	if code != envoy.ReasonPatchMatched {
		s.counted(code, change)
	}
}

// about are the reasons with the object or the service, by code and message.
func (s *reasons) about(subject any) []envoy.Reason {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found, matched []envoy.Reason
	for r, of := range s.of[subject] {
		one := envoy.Reason{Code: r.code, Message: r.message, Related: of.related}
		if r.code == envoy.ReasonPatchMatched {
			matched = append(matched, one)
			continue
		}
		found = append(found, one)
	}
	slices.SortFunc(found, func(a, b envoy.Reason) int {
		return cmp.Or(cmp.Compare(a.Code, b.Code), cmp.Compare(a.Message, b.Message))
	})
	return append(found[:min(len(found), maxReasons)], matched...)
}

// ReasonsChanged names what Reasons and ServiceReasons may tell something else about than when
// it was called last. One reader calls it; nothing is noted before the first time.
func ReasonsChanged(s *Server) (objects []federation.ObjectKey, services []federation.ServiceKey) {
	s.reasons.mu.Lock()
	defer s.reasons.mu.Unlock()
	for subject := range s.reasons.moved {
		switch subject := subject.(type) {
		case federation.ObjectKey:
			objects = append(objects, subject)
		case federation.ServiceKey:
			services = append(services, subject)
		}
	}
	s.reasons.moved = map[any]bool{}
	return objects, services
}

// Reasons says why the object is not, or not wholly, in the resources of proxies
// that are connected, and which patches of an EnvoyFilter match (envoy.ReasonPatchMatched).
func (s *Server) Reasons(key federation.ObjectKey) []envoy.Reason { return s.reasons.about(key) }

// ServiceReasons is Reasons for a service.
func (s *Server) ServiceReasons(key federation.ServiceKey) []envoy.Reason {
	return s.reasons.about(key)
}

// aboutObjects are those of the reasons that are about an object or a service and
// not about single endpoints, which explain tells of.
func aboutObjects(all []envoy.Reason) []envoy.Reason {
	return slices.DeleteFunc(slices.Clone(all), func(r envoy.Reason) bool { return r.Endpoint != nil || len(subjects(r)) == 0 })
}
