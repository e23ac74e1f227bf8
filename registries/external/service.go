package external

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"isthmus.dev/isthmus/federation"
)

// WantsVIP tells whether the service should have an automatic VIP: its oldest
// entry names no address, and its host is one name that a service may have.
func WantsVIP(key federation.ServiceKey, entries []*Reading) bool {
	return len(entries) > 0 && !isWildcard(key.Hostname) && key.Hostname.Usable() && slices.MinFunc(entries, (*Reading).compare).automatic
}

func isWildcard(host federation.Hostname) bool { return strings.HasPrefix(string(host), "*") }

// Services is what the entries say of services, with the VIPs allocated to them.
func Services(entries []Entry, allocated map[federation.ServiceKey][]netip.Addr) (map[federation.ServiceKey]*federation.Shard, []federation.Problem) {
	var problems []federation.Problem
	byKey := map[federation.ServiceKey][]*Reading{}
	for _, e := range entries {
		r, found := Read(e)
		problems = append(problems, found...)
		if r == nil {
			continue
		}
		for _, key := range r.Services() {
			byKey[key] = append(byKey[key], r)
		}
	}
	shards := map[federation.ServiceKey]*federation.Shard{}
	for _, key := range slices.SortedFunc(maps.Keys(byKey), federation.ServiceKey.Compare) {
		shard, found := Service(key, byKey[key], allocated[key])
		problems = append(problems, found...)
		if shard != nil {
			shards[key] = shard
		}
	}
	return shards, problems
}

// Service makes one service of all entries of its namespace that name its host,
// in whatever order; nil when none can be used. The oldest entry decides what
// the service is. Ports of later ones are added, with their endpoints, where
// the oldest has no port of that number or name (seed 24).
func Service(key federation.ServiceKey, entries []*Reading, allocated []netip.Addr) (*federation.Shard, []federation.Problem) {
	var problems []federation.Problem
	var first *Reading
	var shard *federation.Shard
	for _, r := range slices.SortedFunc(slices.Values(entries), (*Reading).compare) {
		n := notesOn(r.key)
		switch {
		case r.itself && isWildcard(key.Hostname):
			n.add(codeWildcard, "spec.hosts", "the wildcard %s cannot be resolved and is left out; name endpoints, or use the resolution NONE", quote(string(key.Hostname)))
		case first == nil:
			first, shard = r, r.shard(key, allocated)
		default:
			r.join(joining{key: key, shard: shard, first: first, notes: n})
		}
		problems = append(problems, n.all()...)
	}
	return shard, problems
}

// shard is the service as the entry alone declares it.
func (r *Reading) shard(key federation.ServiceKey, allocated []netip.Addr) *federation.Shard {
	s := &federation.Shard{
		Ports: slices.Clone(r.ports), VIPs: slices.Clone(r.vips), Resolution: r.resolution, MeshExternal: !r.internal,
		ExportTo: slices.Clone(r.exportTo), ServiceAccounts: slices.Clone(r.accounts), Created: r.created,
		UID: r.key.Namespace + "/" + r.key.Name, Labels: maps.Clone(r.labels),
		Endpoints: r.endpointsOf(key, func(string) bool { return true }),
	}
	if r.automatic && !isWildcard(key.Hostname) {
		for _, ip := range allocated {
			s.VIPs = append(s.VIPs, netip.PrefixFrom(ip, ip.BitLen()))
		}
	}
	if r.selector != nil {
		s.Selector = &federation.Selector{Labels: maps.Clone(r.selector), TargetPorts: maps.Clone(r.targets)}
	}
	return s
}

// endpointsOf are the endpoints with those of their ports that are wanted.
func (r *Reading) endpointsOf(key federation.ServiceKey, wanted func(port string) bool) []federation.Endpoint {
	all := r.endpoints
	if r.itself {
		own := federation.Endpoint{Address: federation.HostAddress(string(key.Hostname)), Health: federation.Healthy}
		for _, p := range r.ports {
			own.Ports = append(own.Ports, federation.EndpointPort{Name: p.Name, Number: r.targets[p.Name]})
		}
		all = []federation.Endpoint{own}
	}
	out := make([]federation.Endpoint, 0, len(all))
	for _, e := range all {
		e.Ports = slices.DeleteFunc(slices.Clone(e.Ports), func(p federation.EndpointPort) bool { return !wanted(p.Name) })
		e.Labels = maps.Clone(e.Labels)
		out = append(out, e)
	}
	return out
}
