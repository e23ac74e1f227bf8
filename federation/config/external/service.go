package external

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"isthmus.dev/isthmus/federation"
)

// WantsVIP reports whether the service should have an automatic VIP: its oldest
// entry names no address, and its host is one name that a service may have.
func WantsVIP(key federation.ServiceKey, entries []*Reading) bool {
	return len(entries) > 0 && !isWildcard(key.Hostname) && key.Hostname.Usable() && slices.MinFunc(entries, (*Reading).compare).automatic
}

// Addresses are the VIPs that the entry itself names.
func (r *Reading) Addresses() []netip.Prefix { return r.vips }

func isWildcard(host federation.Hostname) bool { return strings.HasPrefix(string(host), "*") }

// Services is what the entries say of services, with the VIPs allocated to them.
func Services(entries []Entry, allocated map[federation.ServiceKey][]netip.Addr) (map[federation.ServiceKey]*federation.Shard,
	[]federation.Problem,
) {
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
		n := problemsOf(r.key)
		switch {
		case !r.usableFor(key.Hostname, n):
		case first == nil:
			first, shard = r, r.shard(key, allocated)
		default:
			r.join(joining{key: key, shard: shard, first: first, notes: n})
		}
		problems = append(problems, n.All()...)
	}
	return shard, problems
}

// shard is the service as the entry alone declares it.
func (r *Reading) shard(key federation.ServiceKey, allocated []netip.Addr) *federation.Shard {
	s := &federation.Shard{
		Ports: slices.Clip(r.ports), VIPs: slices.Clip(r.vips), Resolution: r.resolution, MeshExternal: !r.internal,
		ExportTo: r.exportTo, ServiceAccounts: r.accounts, Created: r.created,
		UID: r.key.Namespace + "/" + r.key.Name, Labels: r.labels, Endpoints: slices.Clip(r.endpointsOf(key)),
	}
	if r.automatic && !isWildcard(key.Hostname) {
		for _, ip := range allocated {
			s.VIPs = append(s.VIPs, netip.PrefixFrom(ip, ip.BitLen()))
		}
	}
	if r.selector != nil {
		s.Selector = &federation.Selector{Labels: r.selector, TargetPorts: r.targetPorts()}
	}
	return s
}

// endpointsOf are the endpoints; what is shared with the entry is only read.
func (r *Reading) endpointsOf(key federation.ServiceKey) []federation.Endpoint {
	if !r.itself {
		return r.endpoints
	}
	return federation.NormalEndpoints([]federation.Endpoint{{
		Address: federation.HostAddress(string(key.Hostname)), Health: federation.Healthy, Ports: r.served,
	}})
}

// endpointsServing are the endpoints with those of their ports that are wanted.
func (r *Reading) endpointsServing(key federation.ServiceKey, wanted map[string]bool) []federation.Endpoint {
	out := slices.Clone(r.endpointsOf(key))
	for i := range out {
		out[i].Ports = slices.DeleteFunc(slices.Clone(out[i].Ports), func(p federation.EndpointPort) bool { return !wanted[p.Name] })
	}
	return out
}
