package federation

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// mergeInput is all that the merge of one service depends on.
type mergeInput struct {
	key        ServiceKey
	shards     ShardSet
	found      map[ShardKey]found // what selectors and bindings add
	precedence func(ClusterID) int
	place      func(ShardKey, []Endpoint) []Endpoint // see draft.place
	policy     AddressPolicy
	isName     bool // a registry gives another service this name
	drains     []ServiceDrain
	mesh       *MeshSettings
	before     *Service // the last merge; nil: there was none
}

// merge joins the shards of one service. It is pure and does not depend on the
// order in which the shards came: what they disagree on is decided by
// precedence (the cluster's number, the shard's age, ClusterID, provider) and
// noted as a Conflict.
func merge(in mergeInput) *Service {
	m := merger{in: in, svc: &Service{Key: in.key, Shards: in.shards}}
	for i, key := range m.order() {
		shard := in.shards.Of(key)
		if i == 0 {
			m.svc.Resolution, m.svc.MeshExternal, m.svc.ExportTo = m.resolution(key, shard), shard.MeshExternal, m.exportTo(shard)
			m.svc.ExternalName, m.first = shard.ExternalName, key.Cluster
		} else {
			m.compare(key, shard)
		}
		m.addPorts(key, m.in.found[key].lent.portsOf(shard))
		m.addVIPs(key, shard)
		m.addEndpoints(key, shard)
		m.addAttributes(key, shard)
	}
	return m.finish()
}

type merger struct {
	in       mergeInput
	svc      *Service
	first    ClusterID
	accounts map[string]bool
	taken    map[taken]bool  // workloads that are endpoints by an earlier shard's selector
	sockets  map[string]bool // those that registries declare; nil until asked for
}

func (m *merger) order() []ShardKey {
	ordered := slices.Clone(m.in.shards)
	slices.SortFunc(ordered, func(a, b keyedShard) int {
		return cmp.Or(
			exportedFirst(m.in.key.Hostname, a.Shard, b.Shard),
			cmp.Compare(m.in.precedence(a.Key.Cluster), m.in.precedence(b.Key.Cluster)),
			compareAge(a.Shard.Created, b.Shard.Created), a.Key.Compare(b.Key))
	})
	keys := make([]ShardKey, len(ordered))
	for i, k := range ordered {
		keys[i] = k.Key
	}
	return keys
}

// compareAge puts the older first and the unknown last.
func compareAge(a, b time.Time) int {
	if a.IsZero() != b.IsZero() {
		if a.IsZero() {
			return 1
		}
		return -1
	}
	return a.Compare(b)
}

func (m *merger) compare(key ShardKey, shard *Shard) {
	if r := m.resolution(key, shard); r != m.svc.Resolution {
		kind := ConflictResolution
		if r == Passthrough || m.svc.Resolution == Passthrough {
			kind = ConflictHeadless
		}
		m.conflict(kind, key.Cluster, fmt.Sprintf("resolution is %s in %s and %s in %s", m.svc.Resolution, m.first, r, key.Cluster))
	}
	if shard.MeshExternal != m.svc.MeshExternal {
		m.conflict(ConflictMeshExternal, key.Cluster, fmt.Sprintf("meshExternal is %t in %s and %t in %s", m.svc.MeshExternal, m.first,
			shard.MeshExternal, key.Cluster))
	}
	if exportTo := m.exportTo(shard); !slices.Equal(exportTo, m.svc.ExportTo) {
		m.conflict(ConflictExportTo, key.Cluster, fmt.Sprintf("exportTo is %q in %s and %q in %s", m.svc.ExportTo,
			m.first, exportTo, key.Cluster))
	}
	m.compareAffinity(key.Cluster, m.svc.Affinity(), shard.Affinity)
}

// exportTo is where the shard has the service visible, by its own word or by the mesh's default.
func (m *merger) exportTo(shard *Shard) []string {
	return visibility(ExportTo(shard.ExportTo, m.in.mesh.ExportDefaults().Services))
}

func (m *merger) resolution(key ShardKey, shard *Shard) Resolution {
	if shard.Resolution == ClientSideLB {
		return m.in.found[key].lent.resolution
	}
	return shard.Resolution
}

func (m *merger) addPorts(key ShardKey, ports []Port) {
	for _, p := range ports {
		d := PortDeclaration{Shard: key, Name: p.Name, Protocol: p.Protocol}
		i := slices.IndexFunc(m.svc.Ports, func(have ServicePort) bool {
			return have.Number == p.Number && have.Protocol.Transport() == p.Protocol.Transport()
		})
		if have := m.sameName(p); have != nil {
			m.joinPort(have, p, d)
			continue
		}
		if i < 0 {
			m.svc.Ports = append(m.svc.Ports, ServicePort{
				Name: p.Name, Number: p.Number, Protocol: p.Protocol, Undeclared: p.Undeclared, Target: p.Target,
				Declared: []PortDeclaration{d},
			})
			continue
		}
		have := &m.svc.Ports[i]
		m.comparePort(have, d)
		have.Declared = append(have.Declared, d)
	}
}

func (m *merger) comparePort(have *ServicePort, d PortDeclaration) {
	winner := have.Declared[0].Shard.Cluster
	if d.Protocol != have.Protocol {
		m.conflictWith(ConflictPortProtocol, winner, d.Shard.Cluster,
			fmt.Sprintf("port %d speaks %s in %s and %s in %s", have.Number, have.Protocol, winner, d.Protocol, d.Shard.Cluster))
	}
	if d.Name != have.Name {
		m.conflictWith(ConflictPortName, winner, d.Shard.Cluster,
			fmt.Sprintf("port %d is named %q in %s and %q in %s", have.Number, have.Name, winner, d.Name, d.Shard.Cluster))
	}
}

func (m *merger) addVIPs(key ShardKey, shard *Shard) {
	var vips []netip.Prefix
	for _, vip := range shard.VIPs {
		if why := m.in.policy.Refuse(vip.Addr(), 0); why != "" {
			m.conflict(ConflictAddressRefused, key.Cluster, fmt.Sprintf("VIP %s of %s %s", vip, key.Cluster, why))
			continue
		}
		vips = append(vips, vip)
	}
	if len(vips) == 0 {
		return
	}
	all := append(vips, m.svc.ClusterVIPs.Of(key.Cluster)...)
	slices.SortFunc(all, func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
	})
	m.svc.ClusterVIPs = m.svc.ClusterVIPs.with(key.Cluster, slices.Compact(all))
}

// addEndpoints keeps what the address policy allows; the slice is shared with
// the shard where nothing is refused.
func (m *merger) addEndpoints(key ShardKey, shard *Shard) {
	var refused []string
	all := m.in.place(key, m.endpointsOf(key, shard))
	kept := all
	for i, e := range all {
		why := m.in.policy.refuseEndpoint(&e)
		switch {
		case why != "":
			if refused == nil {
				kept = slices.Clone(all[:i])
			}
			refused = append(refused, e.Address.String()+" "+why)
		case refused != nil:
			kept = append(kept, e)
		}
		if e.ServiceAccount != "" {
			m.account(e.ServiceAccount)
		}
	}
	if refused != nil {
		m.conflict(ConflictAddressRefused, key.Cluster, fmt.Sprintf("endpoints of %s are excluded: %s", key.Cluster,
			strings.Join(firstOf(refused, 5), ", ")))
	}
	m.svc.Endpoints = append(m.svc.Endpoints, ShardEndpoints{Shard: key, Endpoints: kept})
}

func (p AddressPolicy) refuseEndpoint(e *Endpoint) string {
	if ip, ok := e.Address.IP(); ok {
		for _, port := range e.Ports {
			if why := p.Refuse(ip, port.Number); why != "" {
				return why
			}
		}
		return p.Refuse(ip, 0)
	}
	if name, ok := e.Address.Host(); ok {
		return p.RefuseHost(name)
	}
	return ""
}

func firstOf(list []string, n int) []string {
	if len(list) <= n {
		return list
	}
	return append(slices.Clone(list[:n]), fmt.Sprintf("and %d more", len(list)-n))
}

func (m *merger) addAttributes(key ShardKey, shard *Shard) {
	for _, list := range [][]string{shard.ServiceAccounts, m.in.found[key].lent.accounts} {
		for _, a := range list {
			m.account(a)
		}
	}
	if m.svc.TrafficDistribution == "" {
		m.svc.TrafficDistribution = shard.TrafficDistribution
	}
	if compareAge(shard.Created, m.svc.Created) < 0 {
		m.svc.Created = shard.Created
	}
}

func (m *merger) account(name string) {
	if m.accounts == nil {
		m.accounts = map[string]bool{}
	}
	m.accounts[name] = true
}

func (m *merger) conflict(kind ConflictKind, loser ClusterID, message string) {
	m.conflictWith(kind, m.first, loser, message)
}

func (m *merger) conflictWith(kind ConflictKind, winner, loser ClusterID, message string) {
	clusters := []ClusterID{winner, loser}
	if kind == ConflictAddressRefused || winner == "" {
		clusters = []ClusterID{loser}
	}
	m.svc.Conflicts = append(m.svc.Conflicts, Conflict{Kind: kind, Message: message, Clusters: clusters})
}

func (m *merger) finish() *Service {
	m.svc.ServiceAccounts = slices.Sorted(maps.Keys(m.accounts))
	m.svc.Peers = peersOf(m.svc, m.in.before)
	m.svc.Aliases = aliasesOf(m.in)
	slices.SortFunc(m.svc.Ports, func(a, b ServicePort) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Protocol.Transport(), b.Protocol.Transport()))
	})
	m.svc.drain(m.in.drains)
	return m.svc
}

// reasonsFor says what differs between two merges of one service.
func reasonsFor(old, now *Service) Reason {
	if old == nil {
		return ReasonSpec | ReasonEndpoints | ReasonAccounts
	}
	var r Reason
	if !specsEqual(old, now) {
		r |= ReasonSpec
	}
	same := groupsEqual(old.Endpoints, now.Endpoints) && groupsEqual(old.Undrained, now.Undrained) && slices.Equal(old.Drains, now.Drains)
	if !same || !slices.EqualFunc(old.Conflicts, now.Conflicts, conflictsEqual) || !sameSaid(old.Shards, now.Shards) {
		r |= ReasonEndpoints
	}
	if !slices.Equal(old.ServiceAccounts, now.ServiceAccounts) || !slices.EqualFunc(old.Peers, now.Peers, PeerAccounts.equal) {
		r |= ReasonAccounts
	}
	return r
}

func groupsEqual(a, b []ShardEndpoints) bool {
	return slices.EqualFunc(a, b, func(x, y ShardEndpoints) bool {
		return x.Shard == y.Shard && endpointsEqual(x.Endpoints, y.Endpoints)
	})
}

// sameSaid reports whether the registries said the same of the endpoints, those that
// are refused included: the next policy may allow them.
func sameSaid(old, now ShardSet) bool {
	return old.equal(now, func(a, b *Shard) bool { return endpointsEqual(a.Endpoints, b.Endpoints) })
}

func conflictsEqual(a, b Conflict) bool {
	return a.Kind == b.Kind && a.Message == b.Message && slices.Equal(a.Clusters, b.Clusters)
}

func specsEqual(old, now *Service) bool {
	ports := slices.EqualFunc(old.Ports, now.Ports, func(a, b ServicePort) bool {
		return a.Name == b.Name && a.Number == b.Number && a.Protocol == b.Protocol && a.Undeclared == b.Undeclared &&
			a.Target == b.Target && slices.Equal(a.Declared, b.Declared)
	})
	vips := old.ClusterVIPs.equal(now.ClusterVIPs)
	shards := old.Shards.equal(now.Shards, (*Shard).specEqual)
	return ports && vips && shards && old.Resolution == now.Resolution && old.MeshExternal == now.MeshExternal &&
		old.Created.Equal(now.Created) &&
		slices.Equal(old.ExportTo, now.ExportTo) && old.TrafficDistribution == now.TrafficDistribution &&
		slices.Equal(old.Aliases, now.Aliases) && old.ExternalName == now.ExternalName
}
