// Package translated keeps what objects of other APIs, such as Ingresses, are translated to.
// What a translation read is noted, and a change has those repeated that it affects
// (federation/derive).
package translated

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/derive"
	"isthmus.dev/isthmus/internal/text"
)

// codeHostShared is the code of the problem that several clusters have objects for a host.
const codeHostShared = "HOST_IN_SEVERAL_CLUSTERS"

// Unit is one translation.
type Unit struct {
	Objects  []*config.Object // sorted by key
	Problems []config.Problem
	Cluster  federation.ClusterID // whose gateways have routes for Hosts
	Hosts    []string
	Read     federation.Deps // what it was computed from
}

// Words are those of problems and of the log.
type Words struct {
	Object string // "Ingress of a cluster"
	All    string // "Ingresses"
	Shared string // a format: what it means that several clusters have these hosts
}

// Set has the units by key. It is for one goroutine.
type Set[K comparable] struct {
	words Words
	title func(K) string // how problems name a unit
	index *derive.Index[K]
	units map[K]Unit
	hosts map[string]map[federation.ClusterID]int // how many units of each cluster have the host
	worse bool                                    // the problems may be others than were told
	said  []config.Problem                        // nil: nothing was told
	fault []config.Problem                        // of those who read the objects
}

// New returns a set without units.
func New[K comparable](words Words, title func(K) string) *Set[K] {
	return &Set[K]{
		words: words, title: title, index: derive.NewIndex[K](), units: map[K]Unit{},
		hosts: map[string]map[federation.ClusterID]int{},
	}
}

// Affected are the units that the changes affect, which lead to the snapshot.
func (s *Set[K]) Affected(c federation.ChangeSet, of *federation.Snapshot) []K {
	if c.All {
		return slices.Collect(maps.Keys(s.units))
	}
	return s.index.Affected(c, of)
}

// Update translates units again, and returns what that changes. translate fills in a unit; false:
// there is none of the key any more.
func (s *Set[K]) Update(units []K, translate func(K, *Unit) bool) []config.Event {
	gone, come := map[federation.ObjectKey]*config.Object{}, map[federation.ObjectKey]*config.Object{}
	for _, key := range units {
		old := s.units[key]
		now, exists := s.contained(key, translate)
		if !exists {
			now = Unit{}
		}
		s.index.Replace(key, old.Read, now.Read)
		for _, o := range old.Objects {
			gone[o.Key] = o
		}
		for i, o := range now.Objects {
			if before := find(old.Objects, o.Key); before != nil && before.Alike(o) {
				now.Objects[i] = before
			}
			come[o.Key] = now.Objects[i]
		}
		if old.Cluster != now.Cluster || !slices.Equal(old.Hosts, now.Hosts) { // a host that stays shared changes no problem
			s.count(old, -1)
			s.count(now, 1)
		}
		s.worse = s.worse || !slices.Equal(old.Problems, now.Problems)
		s.units[key] = now
		if !exists {
			delete(s.units, key)
		}
	}
	var events []config.Event
	for key, o := range come {
		if gone[key] != o {
			events = append(events, config.Event{Old: gone[key], New: o})
		}
	}
	for key, o := range gone {
		if come[key] == nil {
			events = append(events, config.Event{Old: o})
		}
	}
	slices.SortFunc(events, config.Event.Compare)
	return events
}

func find(objects []*config.Object, key federation.ObjectKey) *config.Object {
	i, found := slices.BinarySearchFunc(objects, key, func(o *config.Object, key federation.ObjectKey) int { return o.Key.Compare(key) })
	if !found {
		return nil
	}
	return objects[i]
}

// contained is translate. After a panic, what was given stays, and the others go on.
func (s *Set[K]) contained(key K, translate func(K, *Unit) bool) (u Unit, exists bool) {
	defer func() {
		if cause := recover(); cause != nil {
			read := u.Read
			u, exists = s.units[key], true
			u.Objects, u.Read = slices.Clone(u.Objects), read
			u.Problems = []config.Problem{{
				Code: federation.CodeHubFault, Object: s.title(key),
				Message: fmt.Sprintf("the hub cannot translate it, which is a fault of the hub; what was translated before stays (%.200v)", cause),
			}}
		}
	}()
	exists = translate(key, &u)
	return u, exists
}

// Everything is all that is given.
func (s *Set[K]) Everything() (events []config.Event) {
	for _, u := range s.units {
		for _, o := range u.Objects {
			events = append(events, config.Event{New: o})
		}
	}
	slices.SortFunc(events, config.Event.Compare)
	return events
}

// count counts the hosts of a unit.
func (s *Set[K]) count(u Unit, by int) {
	if u.Cluster == "" {
		return
	}
	for _, host := range u.Hosts {
		clusters := s.hosts[host]
		if clusters == nil {
			clusters = map[federation.ClusterID]int{}
			s.hosts[host] = clusters
		}
		was := len(clusters) > 1
		clusters[u.Cluster] += by
		if clusters[u.Cluster] == 0 {
			delete(clusters, u.Cluster)
		}
		if len(clusters) == 0 {
			delete(s.hosts, host)
		}
		s.worse = s.worse || was != (len(clusters) > 1)
	}
}

// Problems are all problems, sorted.
func (s *Set[K]) Problems() (all []config.Problem) {
	for _, u := range s.units {
		all = append(all, u.Problems...)
	}
	all = append(all, s.shared()...)
	slices.SortFunc(all, config.Problem.Compare)
	return slices.Compact(all)
}

// shownHosts bounds the hosts that one problem names.
const shownHosts = 10

// shared is the problem that several clusters have the same hosts.
func (s *Set[K]) shared() []config.Problem {
	var hosts []string
	for host, clusters := range s.hosts {
		if len(clusters) > 1 {
			hosts = append(hosts, host)
		}
	}
	if len(hosts) == 0 {
		return nil
	}
	slices.Sort(hosts)
	names, more := text.First(hosts, shownHosts)
	return []config.Problem{{Code: codeHostShared, Object: s.words.All, Message: fmt.Sprintf(s.words.Shared, names, more)}}
}

// Complain tells what is wrong, once. The faults are those of who reads the objects, and logs them.
func (s *Set[K]) Complain(to config.Sink, faults []config.Problem, log *slog.Logger) {
	if !s.worse && s.said != nil && slices.Equal(s.fault, faults) {
		return
	}
	s.worse, s.fault = false, faults
	all := config.Shown(append(slices.Clone(faults), s.Problems()...), s.words.All)
	if s.said != nil && slices.Equal(s.said, all) {
		return
	}
	said := map[config.Problem]bool{}
	for _, p := range s.said {
		said[p] = true
	}
	for _, p := range all[min(len(faults), len(all)):] {
		if !said[p] {
			log.Warn(s.words.Object, slog.String("code", p.Code), slog.String("object", p.Object), slog.String("field", p.Field),
				slog.String("problem", p.Message))
		}
	}
	s.said = append([]config.Problem{}, all...)
	to.Trouble(slices.Clone(s.said))
}
