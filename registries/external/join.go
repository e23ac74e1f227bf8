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
	notes *notes
}

func (j joining) older() string {
	return "ServiceEntry " + j.first.key.Namespace + "/" + j.first.key.Name
}

func (j joining) ignored(field, what string) {
	j.notes.add(codeOlder, field, "%s of %s is not used: the older %s names the same host and decides", what, quote(string(j.key.Hostname)), j.older())
}

// join adds what a later entry may add to the service, and says what it may not.
func (r *Reading) join(j joining) {
	if r.resolution != j.first.resolution {
		j.ignored("spec.resolution", "everything, for its resolution is another one,")
		return
	}
	if !maps.Equal(r.selector, j.first.selector) {
		j.ignored("spec.workloadSelector", "everything, for its workloadSelector is another one,")
		return
	}
	r.compareSpec(j)
	added := r.addPorts(j)
	if len(added) == 0 {
		return
	}
	j.shard.Endpoints = append(j.shard.Endpoints, r.endpointsOf(j.key, func(port string) bool { return added[port] })...)
	if j.shard.Selector != nil {
		for port := range added {
			j.shard.Selector.TargetPorts[port] = r.targets[port]
		}
	}
}

func (r *Reading) compareSpec(j joining) {
	if r.internal != j.first.internal {
		j.ignored("spec.location", "the location")
	}
	if !slices.Equal(r.vips, j.first.vips) {
		j.ignored("spec.addresses", "the addresses")
	}
	if !slices.Equal(r.exportTo, j.first.exportTo) {
		j.ignored("spec.exportTo", "exportTo")
	}
	if !slices.Equal(r.accounts, j.first.accounts) {
		j.ignored("spec.subjectAltNames", "subjectAltNames")
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
			j.ignored(at("spec.ports", i)+".number", "the port, for the service has that number already,")
		case p.Name == "" || name && len(j.shard.Ports) > 0:
			j.ignored(at("spec.ports", i)+".name", "the port, for the names of a service's ports must be distinct,")
		default:
			j.shard.Ports = append(j.shard.Ports, p)
			added[p.Name] = true
		}
	}
	return added
}
