package consul

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"

	"isthmus.dev/isthmus/federation"
)

// model is all that the registry knows, by Consul's own names. One goroutine
// owns it. It remembers which services share a hostname and publishes none of them.
type model struct {
	translations map[string]*translation
	claims       map[federation.ServiceKey]map[string]bool
	odd          map[string]*unreadable // services that cannot be read
	used         federation.Usage
}

// content is the state of some services, as the hub gets it.
type content struct {
	services  map[federation.ServiceKey]*federation.Shard
	workloads map[federation.WorkloadKey]*federation.Workload
	problems  map[string]federation.Problem
}

func newModel() *model {
	return &model{translations: map[string]*translation{}, claims: map[federation.ServiceKey]map[string]bool{}, odd: map[string]*unreadable{}}
}

func newContent() content {
	return content{
		services:  map[federation.ServiceKey]*federation.Shard{},
		workloads: map[federation.WorkloadKey]*federation.Workload{},
		problems:  map[string]federation.Problem{},
	}
}

// set replaces what is known of a service.
func (m *model) set(name string, o *translation) {
	m.remove(name)
	m.translations[name] = o
	m.used = m.used.Add(o.usage())
	if o.odd != nil {
		m.odd[name] = o.odd
	}
	if o.shard == nil && !o.kept {
		return
	}
	if m.claims[o.key] == nil {
		m.claims[o.key] = map[string]bool{}
	}
	m.claims[o.key][name] = true
}

func (m *model) remove(name string) {
	old := m.translations[name]
	if old == nil {
		return
	}
	delete(m.translations, name)
	delete(m.odd, name)
	m.used = m.used.Add(minus(old.usage()))
	delete(m.claims[old.key], name)
	if len(m.claims[old.key]) == 0 {
		delete(m.claims, old.key)
	}
}

// full is everything as one edit.
func (m *model) full() federation.Edit {
	c := newContent()
	for name := range m.translations {
		m.collect(name, &c)
	}
	keepService, keepWorkload := m.keep()
	return federation.Edit{
		Services:  federation.Delta[federation.ServiceKey, *federation.Shard]{Full: true, Set: c.services, Keep: keepService},
		Workloads: federation.Delta[federation.WorkloadKey, *federation.Workload]{Full: true, Set: c.workloads, Keep: keepWorkload},
		Problems:  federation.Delta[string, federation.Problem]{Full: true, Set: c.problems},
	}
}

// collect adds what one service is translated to; a hostname that several services claim
// belongs to none of them.
func (m *model) collect(name string, into *content) {
	o := m.translations[name]
	if o == nil {
		return
	}
	for _, p := range o.problems {
		into.problems[problemKey(name, p)] = p
	}
	if o.shard == nil {
		return
	}
	if claimants := m.claims[o.key]; len(claimants) > 1 {
		p := conflict(name, o.key, claimants)
		into.problems[problemKey(name, p)] = p
		return
	}
	into.services[o.key] = o.shard
	maps.Copy(into.services, o.tagged)
	maps.Copy(into.workloads, o.workloads)
}

func conflict(name string, key federation.ServiceKey, claimants map[string]bool) federation.Problem {
	names := slices.Sorted(maps.Keys(claimants))
	return federation.Problem{Code: "NAME_CONFLICT", Object: "Service " + plain(name), Message: fmt.Sprintf(
		"several services have the hostname %s: %q; none of them is used; rename all but one", key.Hostname, names[:min(len(names), 5)])}
}

// problemKey is short and printable, however odd the name.
func problemKey(name string, p federation.Problem) string {
	if shown := plain(name); shown != name || len(name) > 63 {
		name = fmt.Sprintf("%x", sha256.Sum256([]byte(name)))
	}
	return name + "/" + p.Code + "/" + p.Object + "/" + p.Field
}

// scope is all that a change of some services may touch, seen before and after
// it. It holds no more than those services, so that a change costs the same in
// a large catalogue.
type scope struct {
	m      *model
	names  map[string]bool
	before content
}

// scope opens a change of the named services; keys are those that the changed
// services will claim.
func (m *model) scope(names []string, keys []federation.ServiceKey) *scope {
	s := &scope{m: m, names: map[string]bool{}}
	for _, name := range names {
		s.names[name] = true
		if o := m.translations[name]; o != nil {
			keys = append(keys, o.key)
		}
	}
	for _, key := range keys {
		for name := range m.claims[key] {
			s.names[name] = true
		}
	}
	s.before = s.read()
	return s
}

func (s *scope) read() content {
	c := newContent()
	for name := range s.names {
		s.m.collect(name, &c)
	}
	return c
}

// edit is what the change came to; ok is false where nothing differs.
func (s *scope) edit() (e federation.Edit, ok bool) {
	after := s.read()
	e.Services = delta(s.before.services, after.services, (*federation.Shard).Equal)
	e.Workloads = delta(s.before.workloads, after.workloads, (*federation.Workload).Equal)
	e.Problems = delta(s.before.problems, after.problems, func(a, b federation.Problem) bool { return a == b })
	ok = len(e.Services.Set)+len(e.Services.Gone)+len(e.Workloads.Set)+len(e.Workloads.Gone)+len(e.Problems.Set)+len(e.Problems.Gone) > 0
	return e, ok
}

func delta[K comparable, V any](before, after map[K]V, same func(a, b V) bool) (d federation.Delta[K, V]) {
	for k, v := range after {
		if old, ok := before[k]; !ok || !same(old, v) {
			if d.Set == nil {
				d.Set = map[K]V{}
			}
			d.Set[k] = v
		}
	}
	for k := range before {
		if _, ok := after[k]; !ok {
			d.Gone = append(d.Gone, k)
		}
	}
	return d
}
