package xds

import (
	"iter"
	"maps"
	"slices"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/derive"
)

// nameSet is the names of a group's resources: those that services contribute, and the
// fixed ones, which exist whatever the services. It has the table number them, and each
// keeps its number for as long as it exists. It belongs to its group and has its lock.
type nameSet struct {
	of     *recipe
	faults *faults
	table  *nameTable // nil: numbers are not needed

	counts        map[string]int // how many contributions give the name
	inOrder       []string       // the names, sorted, for those who read them; nil: not sorted yet
	contributions map[federation.ServiceKey][]string
	read          *derive.ByHost // what contributions were made from
	fixed         []string
	lastFixed     []string // as computed last
}

func newNameSet(of *recipe, faults *faults) *nameSet {
	return &nameSet{
		of: of, faults: faults, counts: map[string]int{}, contributions: map[federation.ServiceKey][]string{},
		read: derive.NewByHost(),
	}
}

func (n *nameSet) has(name string) bool { return n.counts[name] > 0 }

// sorted returns the names in order. Callers share it.
func (n *nameSet) sorted() []string {
	if n.inOrder == nil {
		n.inOrder = slices.Sorted(maps.Keys(n.counts))
	}
	return n.inOrder
}

// reset replaces all names. Names that stay keep their numbers.
func (n *nameSet) reset(s *federation.Snapshot, r *federation.Reader) {
	before, contributed := n.counts, n.contributions
	n.counts, n.contributions = make(map[string]int, len(before)), make(map[federation.ServiceKey][]string, len(contributed))
	n.read, n.fixed, n.inOrder = derive.NewByHost(), nil, nil
	n.refix(s, r)
	if n.of.make.contributed(n.of.kind, n.of.facet) {
		var names []string
		reader := s.Read()
		for services := range byHostname(s) {
			names = n.ask(services, contributed, s, reader, names[:0])
		}
	}
	n.release(maps.Keys(before))
}

// byHostname yields the services of each hostname. The slice is used again.
func byHostname(s *federation.Snapshot) iter.Seq[[]*federation.Service] {
	return func(yield func([]*federation.Service) bool) {
		var services []*federation.Service
		for svc := range s.Services().All() {
			if len(services) > 0 && services[0].Key.Hostname != svc.Key.Hostname {
				if !yield(services) {
					return
				}
				services = services[:0]
			}
			services = append(services, svc)
		}
		if len(services) > 0 {
			yield(services)
		}
	}
}

// follow applies the changes that lead from one snapshot to the other. It returns the
// names that came or went; names that stay are built again only if something that they
// read has changed.
func (n *nameSet) follow(c federation.ChangeSet, before, after *federation.Snapshot) (moved []string) {
	for _, host := range n.affected(c, before, after) {
		for _, svc := range before.ByHostname(host) {
			if _, stays := after.Service(svc.Key); !stays {
				n.faults.set(faultOfService(svc.Key), nil)
				moved = n.contribute(svc.Key, nil, moved)
			}
		}
		if services := after.ByHostname(host); len(services) > 0 {
			moved = n.ask(services, n.contributions, after, after.Read(), moved)
		} else {
			n.read.Note(host, after, federation.Deps{})
		}
	}
	return moved
}

// affected are the hostnames whose services may contribute other names after the changes,
// each once.
func (n *nameSet) affected(c federation.ChangeSet, before, after *federation.Snapshot) []federation.Hostname {
	if !n.of.make.contributed(n.of.kind, n.of.facet) {
		return nil
	}
	hosts := n.read.Affected(c, before, after)
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// ask has the services, which are all of one hostname, contribute again. It appends the
// names that came or went.
func (n *nameSet) ask(
	services []*federation.Service, before map[federation.ServiceKey][]string, s *federation.Snapshot, r *federation.Reader, moved []string,
) []string {
	for _, svc := range services {
		moved = n.contribute(svc.Key, n.contributionOf(svc, before[svc.Key], s, r), moved)
	}
	n.read.Note(services[0].Key.Hostname, s, r.Deps())
	federation.Restart(r)
	return moved
}

// contribute replaces what the service contributes.
func (n *nameSet) contribute(key federation.ServiceKey, now, moved []string) []string {
	before := n.contributions[key]
	if len(now) > 0 {
		n.contributions[key] = now
	} else {
		delete(n.contributions, key)
	}
	return n.exchange(before, now, moved)
}

// refix asks again for the fixed names. It returns those that were added or removed.
func (n *nameSet) refix(s *federation.Snapshot, r *federation.Reader) (moved []string) {
	before := n.fixed
	n.fixed = slices.Sorted(slices.Values(n.fixedOf(s, r)))
	return n.exchange(before, n.fixed, nil)
}

// exchange replaces names of which there is one contribution less by others, of which
// there is one more; both are sorted. It appends those that came or went.
func (n *nameSet) exchange(before, now, moved []string) []string {
	if !slices.Equal(before, now) {
		n.inOrder = nil
	}
	for _, name := range now {
		if !within(before, name) {
			n.counts[name]++
			if n.counts[name] == 1 && n.table != nil {
				n.table.holdResource(name)
			}
			moved = append(moved, name)
		}
	}
	for _, name := range before {
		if !within(now, name) {
			n.counts[name]--
			if n.counts[name] == 0 {
				delete(n.counts, name)
				n.release(slices.Values([]string{name}))
			}
			moved = append(moved, name)
		}
	}
	return moved
}

func within(sorted []string, name string) bool {
	_, found := slices.BinarySearch(sorted, name)
	return found
}

// preview names what the changes would have come or go, or contribute differently.
func (n *nameSet) preview(c federation.ChangeSet, before, after *federation.Snapshot) (names []string) {
	for _, host := range n.affected(c, before, after) {
		for _, svc := range before.ByHostname(host) {
			names = append(names, n.contributions[svc.Key]...)
		}
		for _, svc := range after.ByHostname(host) {
			names = append(names, n.of.make.contributes(n.of.kind, n.of.facet, svc, after.Read())...)
		}
	}
	return names
}

func (n *nameSet) release(names iter.Seq[string]) {
	if n.table != nil {
		n.table.releaseResources(names)
	}
}

// close gives back the numbers.
func (n *nameSet) close() {
	n.release(maps.Keys(n.counts))
	n.table = nil
}
