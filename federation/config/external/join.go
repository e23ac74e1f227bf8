package external

import (
	"maps"
	"slices"

	"isthmus.dev/isthmus/federation"
)

// joining is a service in the making, to which a later entry comes.
type joining struct {
	key   federation.ServiceKey
	shard *federation.Shard
	first *Reading // decides
	notes *objectProblems
}

func (j joining) older() string {
	return "ServiceEntry " + j.first.key.Namespace + "/" + j.first.key.Name
}

func (j joining) ignored(field, what string) {
	j.notes.Add(codeOlder, field, "%s not used for %s: the older %s names the same host and decides", what,
		federation.Quote(string(j.key.Hostname)), j.older())
}

// join adds what a later entry may add to the service, and says what it may not.
func (r *Reading) join(j joining) {
	if r.resolution != j.first.resolution {
		j.ignored("spec.resolution", "the entry has another resolution and is")
		return
	}
	if !maps.Equal(r.selector, j.first.selector) {
		j.ignored("spec.workloadSelector", "the entry has another workloadSelector and is")
		return
	}
	r.compareSpec(j)
	added := r.addPorts(j)
	if len(added) == 0 {
		return
	}
	j.shard.Endpoints = append(j.shard.Endpoints, r.endpointsServing(j.key, added)...)
	if j.shard.Selector != nil {
		for port := range added {
			j.shard.Selector.TargetPorts[port], _ = r.target(port)
		}
	}
}

func (r *Reading) compareSpec(j joining) {
	if r.internal != j.first.internal {
		j.ignored("spec.location", "the location is")
	}
	if len(r.vips) > 0 && !slices.Equal(r.vips, j.first.vips) {
		j.ignored("spec.addresses", "the addresses are")
	}
	if len(r.exportTo) > 0 && !slices.Equal(r.exportTo, j.first.exportTo) {
		j.ignored("spec.exportTo", "exportTo is")
	}
	if len(r.accounts) > 0 && !slices.Equal(r.accounts, j.first.accounts) {
		j.ignored("spec.subjectAltNames", "subjectAltNames are")
	}
}

// addPorts returns the names of the ports that became the service's.
func (r *Reading) addPorts(j joining) map[string]bool {
	added := map[string]bool{}
	for i, p := range r.ports {
		number := slices.ContainsFunc(j.shard.Ports, func(o federation.Port) bool {
			return o.Number == p.Number && o.Protocol.Transport() == p.Protocol.Transport()
		})
		name := slices.ContainsFunc(j.shard.Ports, func(o federation.Port) bool { return o.Name == p.Name || o.Name == "" })
		switch {
		case number:
			j.ignored(at("spec.ports", i)+".number", "the service has a port of that number already and this one is")
		case p.Name == "" || name && len(j.shard.Ports) > 0:
			j.ignored(at("spec.ports", i)+".name", "ports of one service need distinct names and this one is")
		default:
			j.shard.Ports = append(j.shard.Ports, p)
			added[p.Name] = true
		}
	}
	return added
}
