package federation

import (
	"bytes"
	"maps"
	"slices"

	iradix "github.com/hashicorp/go-immutable-radix/v2"
)

// Next is the step of the whole program: the snapshot that follows from an
// edit, and what differs. It is pure: nothing but its arguments is read, the
// snapshot is not changed, nothing is published. An edit that changes nothing
// returns the very same snapshot. The order in which edits of different sources
// come does not show in the result, except for version numbers.
func Next(s *Snapshot, e Edit) (*Snapshot, ChangeSet) {
	d := newDraft(s)
	d.applySettings(e.Settings)
	d.applyClusters(e.Clusters)
	d.applySource(e)
	d.applyServices(e.Source, e.Services)
	d.applyWorkloads(e.Source, e.Workloads)
	d.applyProblems(e.Source, e.Problems)
	if !d.changed {
		return s, ChangeSet{From: s.version, To: s.version}
	}
	next := d.commit()
	return next, next.ChangesSince(s.version)
}

// draft is a snapshot in the making.
type draft struct {
	base      *Snapshot
	services  *iradix.Txn[*Service]
	members   *iradix.Txn[ServiceKey]
	ports     *iradix.Txn[ServiceKey]
	workloads *iradix.Txn[*Workload]
	addresses *iradix.Txn[resident]
	problems  *iradix.Txn[Problem]
	clusters  *iradix.Txn[*Cluster]
	journal   *journalTxn
	settings  Settings
	version   uint64
	changed   bool
	touched   map[AddressKey]bool // where residents came, went or changed
}

func newDraft(s *Snapshot) *draft {
	return &draft{
		base: s, services: s.services.Txn(), members: s.members.Txn(), ports: s.ports.Txn(),
		workloads: s.workloads.Txn(), addresses: s.addresses.Txn(), problems: s.problems.Txn(),
		clusters: s.clusters.Txn(), journal: s.journal.begin(s.version + 1), settings: s.settings, version: s.version + 1,
		touched: map[AddressKey]bool{},
	}
}

func (d *draft) commit() *Snapshot {
	for at := range d.touched {
		d.journal.record(addressEntry, at.bytes(), !d.inhabited(at))
	}
	return &Snapshot{
		version: d.version, services: d.services.Commit(), members: d.members.Commit(), ports: d.ports.Commit(),
		workloads: d.workloads.Commit(), addresses: d.addresses.Commit(), problems: d.problems.Commit(),
		clusters: d.clusters.Commit(), journal: d.journal.commit(), settings: d.settings, superseded: make(chan struct{}),
	}
}

func (d *draft) inhabited(at AddressKey) bool {
	found := false
	d.addresses.Root().WalkPrefix(append(at.bytes(), nul...), func([]byte, resident) bool { found = true; return true })
	return found
}

func (d *draft) record(kind entryKind, key []byte, gone bool) {
	d.changed = true
	d.journal.record(kind, key, gone)
}

func (d *draft) applySettings(now *Settings) {
	if now == nil || now.Addresses.AllowLoopback == d.settings.Addresses.AllowLoopback && slices.Equal(now.Addresses.Own, d.settings.Addresses.Own) {
		return
	}
	d.settings = *now
	d.record(settingEntry, nil, false)
	d.remergeAll()
}

// remergeAll merges every service anew; only a change of settings needs it.
func (d *draft) remergeAll() {
	var all []*Service
	d.services.Root().Walk(func(_ []byte, svc *Service) bool { all = append(all, svc); return false })
	for _, svc := range all {
		d.put(svc.Key, svc.Shards)
	}
}

func (d *draft) applyServices(source ShardKey, delta Delta[ServiceKey, *Shard]) {
	if delta.Full {
		for _, key := range d.servicesOf(source) {
			if _, stays := delta.Set[key]; !stays {
				d.setShard(source, key, nil)
			}
		}
		d.dropProblems(source, problemOfNext, func(name string) bool {
			_, stays := delta.Set[serviceKeyOf([]byte(name))]
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
	var shards map[ShardKey]*Shard
	if old, ok := d.services.Get(key.bytes()); ok {
		shards = old.Shards
	}
	was := shards[source]
	if shard == nil {
		if was == nil {
			return
		}
		shards = maps.Clone(shards)
		delete(shards, source)
		d.members.Delete(append([]byte(source.prefix()), key.bytes()...))
		d.put(key, shards)
		return
	}
	normal := normalShard(shard)
	if was != nil && was.specEqual(normal) && endpointsEqual(was.Endpoints, normal.Endpoints) {
		return
	}
	if shards = maps.Clone(shards); shards == nil {
		shards = map[ShardKey]*Shard{}
	}
	shards[source] = normal
	d.members.Insert(append([]byte(source.prefix()), key.bytes()...), key)
	d.put(key, shards)
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
	out.Endpoints = normalEndpoints(in.Endpoints)
	return &out
}

// put makes the shards the service: merges, indexes and records. No shards:
// the service is gone.
func (d *draft) put(key ServiceKey, shards map[ShardKey]*Shard) {
	old, _ := d.services.Get(key.bytes())
	var now *Service
	reasons := ReasonSpec
	if len(shards) > 0 {
		now = merge(mergeInput{key: key, shards: shards, precedence: d.precedence, policy: d.settings.Addresses})
		if reasons = reasonsFor(old, now); reasons == 0 {
			return
		}
		now.stamp(old, reasons, d.version)
		d.services.Insert(key.bytes(), now)
	} else {
		d.services.Delete(key.bytes())
	}
	d.record(serviceEntry, key.bytes(), now == nil)
	d.indexPorts(key, old, now)
	d.indexEndpoints(key, old, now)
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

func (d *draft) applyWorkloads(source ShardKey, delta Delta[WorkloadKey, *Workload]) {
	if delta.Full {
		prefix := []byte(source.prefix())
		var gone []WorkloadKey
		d.workloads.Root().WalkPrefix(prefix, func(k []byte, _ *Workload) bool {
			gone = append(gone, workloadKeyOf(k, source))
			return false
		})
		for _, key := range gone {
			if _, stays := delta.Set[key]; !stays {
				d.setWorkload(source, key, nil)
			}
		}
	}
	for _, key := range delta.Gone {
		d.setWorkload(source, key, nil)
	}
	for key, w := range delta.Set {
		d.setWorkload(source, key, w)
	}
}

func (d *draft) setWorkload(source ShardKey, key WorkloadKey, now *Workload) {
	at := workloadBytes(source, key)
	old, _ := d.workloads.Get(at)
	switch {
	case old == nil && now == nil, old != nil && now != nil && old.equal(now):
		return
	case now == nil:
		d.workloads.Delete(at)
	default:
		d.workloads.Insert(at, now)
	}
	d.changed = true
	d.residents().workload(resident{shard: source, workload: key, isPod: true}, old, now)
}

// Problems are kept apart by who found them, so that neither can remove the
// other's.
const (
	problemOfRegistry = "r"
	problemOfNext     = "n"
)

func (d *draft) applyProblems(source ShardKey, delta Delta[string, Problem]) {
	if delta.Full {
		d.dropProblems(source, problemOfRegistry, func(name string) bool { _, stays := delta.Set[name]; return !stays })
	}
	for _, name := range delta.Gone {
		d.setProblem(source, problemOfRegistry, name, nil)
	}
	for name, p := range delta.Set {
		d.setProblem(source, problemOfRegistry, name, &p)
	}
}

func (d *draft) dropProblems(source ShardKey, origin string, drop func(name string) bool) {
	prefix := []byte(source.prefix() + origin + nul)
	var names []string
	d.problems.Root().WalkPrefix(prefix, func(k []byte, _ Problem) bool {
		if name := string(bytes.TrimPrefix(k, prefix)); drop(name) {
			names = append(names, name)
		}
		return false
	})
	for _, name := range names {
		d.setProblem(source, origin, name, nil)
	}
}

func (d *draft) setProblem(source ShardKey, origin, name string, now *Problem) {
	at := []byte(source.prefix() + origin + nul + name)
	old, had := d.problems.Get(at)
	switch {
	case now == nil && !had, now != nil && had && old == *now:
		return
	case now == nil:
		d.problems.Delete(at)
		d.updateCluster(source, func(c *Cluster) { c.Problems-- })
	default:
		d.problems.Insert(at, *now)
		if !had {
			d.updateCluster(source, func(c *Cluster) { c.Problems++ })
		}
	}
	d.record(clusterEntry, []byte(source.Cluster), false)
}
