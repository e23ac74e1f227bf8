package federation

import (
	"cmp"
	"slices"
)

func (d *draft) applyServices(source ShardKey, delta Delta[ServiceKey, *Shard]) {
	if delta.Full {
		for _, key := range d.servicesOf(source) {
			if delta.removes(key) {
				d.setShard(source, key, nil)
			}
		}
		d.dropProblems(source, problemOfNext, func(name string) bool { return delta.removes(serviceKeyOf(name)) })
	}
	for _, key := range delta.Gone {
		d.setShard(source, key, nil)
		d.setProblem(source, problemOfNext, key.sortKey(), nil)
	}
	for key, shard := range delta.Set {
		problem := problemWith(key, shard)
		d.setProblem(source, problemOfNext, key.sortKey(), problem)
		if problem != nil {
			shard = nil
		}
		d.setShard(source, key, shard)
	}
}

func (d *draft) servicesOf(source ShardKey) []ServiceKey {
	var keys []ServiceKey
	prefix := source.prefix()
	d.members.WalkPrefix(prefix, func(k string, _ struct{}) bool {
		keys = append(keys, serviceKeyOf(k[len(prefix):]))
		return false
	})
	return keys
}

// setShard makes the shard what its source says of the service; nil removes it.
func (d *draft) setShard(source ShardKey, key ServiceKey, shard *Shard) {
	was := d.shards(key).Of(source)
	if was != nil && was.NameOf != "" {
		was = nil
	}
	switch {
	case shard == nil && was == nil:
		return
	case shard == nil:
		d.say(key, source, nil)
		d.members.Delete(source.prefix() + key.sortKey())
	default:
		shard = shard.Normal()
		if was != nil && was.Equal(shard) {
			return
		}
		d.say(key, source, shard)
		d.members.Set(source.prefix()+key.sortKey(), struct{}{})
	}
	d.rebound = d.rebound || was == nil || shard == nil
	d.workloads.indexSelector(source, key, was, shard)
	d.indexBindings(source, key, was, shard)
	d.services.indexNames(source, key, was, shard)
	d.networks.noteClaim(source, key, was, shard)
}

// Normal is the shard as a snapshot keeps it: sorted, with defaults filled in, and
// each endpoint once. One that is so already is returned as it is, so that who made
// it shares it with the snapshot.
func (s *Shard) Normal() *Shard {
	exportTo, endpoints, ports := normalExportTo(s.ExportTo), NormalEndpoints(s.Endpoints), normalPorts(s.Ports)
	if slices.Equal(exportTo, s.ExportTo) && sameSlice(endpoints, s.Endpoints) && sameSlice(ports, s.Ports) {
		return s
	}
	out := *s
	out.ExportTo, out.Endpoints, out.Ports = exportTo, endpoints, ports
	return &out
}

func sameSlice[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

func normalPorts(in []Port) []Port {
	if slices.IsSortedFunc(in, comparePorts) && !slices.ContainsFunc(in, func(p Port) bool { return p.Protocol == "" }) {
		return in
	}
	out := slices.Clone(in)
	for i := range out {
		out[i].Protocol = cmp.Or(out[i].Protocol, TCP)
	}
	slices.SortFunc(out, comparePorts)
	return out
}

// normalExportTo is the set in one order; everywhere is nil.
func normalExportTo(in []string) []string {
	if slices.Contains(in, "*") {
		return nil
	}
	return slices.Compact(slices.Sorted(slices.Values(in)))
}

// put makes the service out of its shards: merges, indexes and records, and
// tells whether that made a difference. No shards: the service is gone. The
// circle is of bindings that lead back to the service.
func (d *draft) put(key ServiceKey, circle map[ServiceKey]bool) bool {
	old, _ := d.services.Get(key.sortKey())
	var now *Service
	shards, found := d.shards(key), d.find(key, old, circle)
	if len(shards) > 0 {
		now = merge(mergeInput{key: key, shards: shards, found: found, precedence: d.clusters.precedence, place: d.place, policy: d.settings.Addresses, isName: d.services.isName(key), before: old})
		reasons := reasonsFor(old, now)
		if reasons == 0 {
			return false
		}
		now.stamp(old, reasons, d.version)
		d.services.Set(key.sortKey(), now)
	} else if _, had := d.services.Delete(key.sortKey()); !had {
		return false
	}
	d.record(serviceEntry, key.sortKey())
	d.services.indexPorts(key, old, now)
	d.services.indexVIPs(key, old, now)
	d.services.indexExternalName(key, old, now)
	d.indexEndpoints(key, old, now)
	d.networks.noteService(key, old, now)
	return true
}

func (s *Service) stamp(old *Service, reasons Reason, version uint64) {
	if old != nil {
		s.SpecVersion, s.EndpointsVersion, s.AccountsVersion = old.SpecVersion, old.EndpointsVersion, old.AccountsVersion
	}
	for reason, at := range map[Reason]*uint64{ReasonSpec: &s.SpecVersion, ReasonEndpoints: &s.EndpointsVersion, ReasonAccounts: &s.AccountsVersion} {
		if reasons&reason != 0 {
			*at = version
		}
	}
}

func (x *clustersTxn) precedence(id ClusterID) int {
	c, _ := x.Get(string(id))
	return c.precedence()
}

func (x *servicesTxn) indexPorts(key ServiceKey, old, now *Service) {
	before, after := tcpPorts(old), tcpPorts(now)
	for _, p := range before {
		if !slices.Contains(after, p) {
			x.ports.Delete(portKey(p, key))
		}
	}
	for _, p := range after {
		if !slices.Contains(before, p) {
			x.ports.Set(portKey(p, key), struct{}{})
		}
	}
}

func tcpPorts(s *Service) []uint16 {
	if s == nil {
		return nil
	}
	var numbers []uint16
	for _, p := range s.Ports {
		if p.Protocol.Transport() == TransportTCP {
			numbers = append(numbers, p.Number)
		}
	}
	return numbers
}

// indexEndpoints moves the index by address and the counts of the clusters
// from the old endpoints to the new ones.
func (d *draft) indexEndpoints(key ServiceKey, old, now *Service) {
	before, after := old.endpointsOf(), now.endpointsOf()
	for shard, was := range before {
		if is, stays := after[shard]; stays {
			d.addresses.moveEndpoints(shard, key, was, is)
			d.count(shard, 0, len(is)-len(was))
		} else {
			d.addresses.moveEndpoints(shard, key, was, nil)
			d.count(shard, -1, -len(was))
		}
	}
	for shard, is := range after {
		if _, was := before[shard]; !was {
			d.addresses.moveEndpoints(shard, key, nil, is)
			d.count(shard, 1, len(is))
		}
	}
}

func (s *Service) endpointsOf() map[ShardKey][]Endpoint {
	if s == nil {
		return nil
	}
	m := make(map[ShardKey][]Endpoint, len(s.Endpoints))
	for _, e := range s.Endpoints {
		m[e.Shard] = e.Endpoints
	}
	return m
}

func (x *addressesTxn) residents() residentsTxn {
	return residentsTxn{tree: &x.Txn, touch: func(at AddressKey) { x.touched[at] = true }}
}

func (x *addressesTxn) moveEndpoints(shard ShardKey, key ServiceKey, old, now []Endpoint) {
	x.residents().endpoints(resident{shard: shard, service: key}, old, now)
}
