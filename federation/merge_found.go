package federation

import (
	"slices"
	"strconv"
)

// found is what Next finds for a shard beside what its registry says.
type found struct {
	selected []selection // by the selector
	lent     lent        // by the bindings
}

type taken struct {
	shard    ShardKey
	workload WorkloadKey
}

// endpointsOf joins what the registry declares with what was found for it. A
// declared endpoint stays as it was declared, and a workload that several shards
// select is an endpoint of the first.
func (m *merger) endpointsOf(key ShardKey, shard *Shard) []Endpoint {
	f := m.in.found[key]
	if len(f.selected) == 0 && len(f.lent.endpoints) == 0 {
		return shard.Endpoints
	}
	m.collectSockets()
	ports := f.lent.portsOf(shard)
	list := slices.Clone(shard.Endpoints)
	for _, s := range f.selected {
		this := taken{s.shard, s.workload}
		if !m.taken[this] && !m.sockets[sockets(ports, &s.endpoint)] {
			m.taken[this] = true
			list = append(list, s.endpoint)
		}
	}
	for _, e := range f.lent.endpoints {
		if !m.sockets[sockets(ports, &e)] {
			list = append(list, e)
		}
	}
	return NormalEndpoints(list)
}

func (m *merger) collectSockets() {
	if m.sockets != nil {
		return
	}
	m.sockets, m.taken = map[string]bool{}, map[taken]bool{}
	for key, shard := range m.in.shards.All() {
		ports := m.in.found[key].lent.portsOf(shard)
		for i := range shard.Endpoints {
			m.sockets[sockets(ports, &shard.Endpoints[i])] = true
		}
	}
}

// sockets is the same for two endpoints that listen at the same address, for
// each port of the service at the same one, whatever their shards call the ports.
func sockets(ports []Port, e *Endpoint) string {
	key := append([]byte(e.Address.String()), 0)
	key = append(append(key, e.Network...), 0)
	for _, p := range ports {
		if number, ok := e.Port(p.Name); ok {
			key = append(append(key, p.Protocol.Transport()...), 0)
			key = append(strconv.AppendUint(key, uint64(p.Number), 10), 0)
			key = append(strconv.AppendUint(key, uint64(number), 10), 0)
		}
	}
	return string(key)
}
