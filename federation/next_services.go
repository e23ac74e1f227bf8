package federation

import "slices"

func (d *draft) applyServices(source ShardKey, delta Delta[ServiceKey, *Shard]) {
	if delta.Full {
		for _, key := range d.servicesOf(source) {
			if _, stays := delta.Set[key]; !stays {
				d.setShard(source, key, nil)
			}
		}
		d.dropProblems(source, problemOfNext, func(name string) bool {
			_, stays := delta.Set[serviceKeyOf(name)]
			return !stays
		})
	}
	for _, key := range delta.Gone {
		d.setShard(source, key, nil)
		d.setProblem(source, problemOfNext, string(key.bytes()), nil)
	}
	for key, shard := range delta.Set {
		problem := problemWith(key, shard)
		d.setProblem(source, problemOfNext, string(key.bytes()), problem)
		if problem != nil {
			shard = nil
		}
		d.setShard(source, key, shard)
	}
}

func (d *draft) servicesOf(source ShardKey) []ServiceKey {
	var keys []ServiceKey
	d.members.Root().WalkPrefix([]byte(source.prefix()), func(_ []byte, key ServiceKey) bool {
		keys = append(keys, key)
		return false
	})
	return keys
}

// setShard makes the shard what its source says of the service; nil removes it.
func (d *draft) setShard(source ShardKey, key ServiceKey, shard *Shard) {
	was := d.shards(key)[source]
	switch {
	case shard == nil && was == nil:
		return
	case shard == nil:
		delete(d.own(key), source)
		d.members.Delete(append([]byte(source.prefix()), key.bytes()...))
	default:
		shard = normalShard(shard)
		if was != nil && was.Equal(shard) {
			return
		}
		d.own(key)[source] = shard
		d.members.Insert(append([]byte(source.prefix()), key.bytes()...), key)
	}
	d.rebound = d.rebound || was == nil || shard == nil
	d.indexSelector(source, key, was, shard)
	d.indexBindings(source, key, was, shard)
	d.noteClaim(source, key, was, shard)
}

func normalShard(in *Shard) *Shard {
	out := *in
	out.Ports = slices.Clone(in.Ports)
	for i := range out.Ports {
		if out.Ports[i].Protocol == "" {
			out.Ports[i].Protocol = TCP
		}
	}
	slices.SortFunc(out.Ports, comparePorts)
	out.ExportTo = normalExportTo(in.ExportTo)
	out.Endpoints = normalEndpoints(in.Endpoints)
	return &out
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
	old, _ := d.services.Get(key.bytes())
	var now *Service
	shards, found := d.shards(key), d.find(key, old, circle)
	if len(shards) > 0 {
		now = merge(mergeInput{key: key, shards: shards, found: found, precedence: d.precedence, place: d.place, policy: d.settings.Addresses, before: old})
		reasons := reasonsFor(old, now)
		if reasons == 0 {
			return false
		}
		now.stamp(old, reasons, d.version)
		d.services.Insert(key.bytes(), now)
	} else if _, had := d.services.Delete(key.bytes()); !had {
		return false
	}
	d.record(serviceEntry, key.bytes())
	d.indexPorts(key, old, now)
	d.indexVIPs(key, old, now)
	d.indexExternalName(key, old, now)
	d.indexEndpoints(key, old, now)
	d.noteNetworksOf(key, old, now)
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

func (d *draft) precedence(id ClusterID) int {
	c, _ := d.clusters.Get([]byte(id))
	return c.precedence()
}

func (d *draft) indexPorts(key ServiceKey, old, now *Service) {
	before, after := tcpPorts(old), tcpPorts(now)
	for _, p := range before {
		if !slices.Contains(after, p) {
			d.ports.Delete(portKey(p, key))
		}
	}
	for _, p := range after {
		if !slices.Contains(before, p) {
			d.ports.Insert(portKey(p, key), key)
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
			d.moveEndpoints(shard, key, was, is)
			d.count(shard, 0, len(is)-len(was))
		} else {
			d.moveEndpoints(shard, key, was, nil)
			d.count(shard, -1, -len(was))
		}
	}
	for shard, is := range after {
		if _, was := before[shard]; !was {
			d.moveEndpoints(shard, key, nil, is)
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

func (d *draft) residents() residentsTxn {
	return residentsTxn{tree: d.addresses, touch: func(at AddressKey) { d.touched[at] = true }}
}

func (d *draft) moveEndpoints(shard ShardKey, key ServiceKey, old, now []Endpoint) {
	d.residents().endpoints(resident{shard: shard, service: key}, old, now)
}
