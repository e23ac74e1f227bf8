package facet

import (
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/destinationrule"
)

// Causes notes what virtual hosts and filters are made of.
type Causes struct {
	Of    map[any][]federation.ObjectKey // by the host's name, or by the filter
	rules []federation.ObjectKey         // DestinationRules of the one that is being made
}

// CausedBy notes that the virtual host of that name, or the filter, is made of
// the object.
func (v *View) CausedBy(o *federation.Object, hostOrFilter any) {
	if v.Causes != nil {
		v.Causes.Of[hostOrFilter] = append(v.Causes.Of[hostOrFilter], o.Key)
	}
}

// CausedByPolicy notes that what is being made has something of the service's
// DestinationRules.
func (v *View) CausedByPolicy(s *federation.Service) {
	if v.Causes == nil {
		return
	}
	for _, o := range destinationrule.For(s, v.Callers(), v.Reader) {
		v.Causes.rules = append(v.Causes.rules, o.Key)
	}
}

// Made notes the DestinationRules of what was made. What nothing else says anything of
// is made of the ServiceEntries that define the service; nil: there is none.
func (v *View) Made(hostOrFilter any, s *federation.Service) {
	if v.Causes == nil {
		return
	}
	v.Causes.Of[hostOrFilter] = append(v.Causes.Of[hostOrFilter], v.Causes.rules...)
	v.Causes.rules = nil
	if len(v.Causes.Of[hostOrFilter]) > 0 || s == nil {
		return
	}
	for o := range v.Reader.Objects().Named(federation.ServiceEntryKind, string(s.Key.Hostname)) {
		if o.Key.Namespace == s.Key.Namespace {
			v.CausedBy(o, hostOrFilter)
		}
	}
}
