package kubernetes

import (
	"cmp"
	"log/slog"
	"net/netip"
	"time"

	"isthmus.dev/isthmus/federation"
)

// model is all that the cluster said, joined, and what of it was passed on. One
// goroutine owns it. Its cost grows with what changed: a slice touches its
// service, a pod the services of the slices that refer to it, a node its pods.
type model struct {
	configured federation.NetworkID
	named      map[string]federation.NetworkID // by the labels of namespaces
	cluster    federation.ClusterIdentity

	services map[key]*service
	slices   sliceTable
	pods     map[key]*pod
	nodes    map[string]*node
	defaults map[key]*defaults // of namespaces
	vips     map[netip.Addr]key

	nodePods references[string, key]     // node → pods
	podsAt   references[netip.Addr, key] // pod's address → pods

	absences absences
	now      func() time.Time
	used     [kinds]federation.Usage

	dirtyServices map[key]struct{}
	dirtyPods     map[key]struct{}
	problems      problemSet
	faulty        map[subject]struct{} // objects over which the hub panicked
	log           *slog.Logger
	sent          sent
	identityDirty bool
}

// sent is what was passed on last, by the same pointers.
type sent struct {
	services  map[federation.ServiceKey]*federation.Shard
	workloads map[federation.WorkloadKey]*federation.Workload
	names     map[key]federation.ServiceKey
}

func newModel(configured federation.NetworkID) *model {
	return &model{
		configured: configured, named: map[string]federation.NetworkID{},
		services: map[key]*service{}, slices: newSliceTable(), pods: map[key]*pod{},
		nodes: map[string]*node{}, defaults: map[key]*defaults{}, vips: map[netip.Addr]key{},
		nodePods: references[string, key]{}, podsAt: references[netip.Addr, key]{},
		absences: absences{missing: map[key]map[endpointID]absence{}, due: map[key]time.Time{}}, now: time.Now,
		dirtyServices: map[key]struct{}{}, dirtyPods: map[key]struct{}{},
		problems: newProblemSet(), faulty: map[subject]struct{}{}, log: slog.Default(),
		sent: sent{
			services: map[federation.ServiceKey]*federation.Shard{}, workloads: map[federation.WorkloadKey]*federation.Workload{},
			names: map[key]federation.ServiceKey{},
		},
	}
}

// network is that of whatever names none itself.
func (m *model) network() federation.NetworkID {
	return cmp.Or(m.configured, m.cluster.Network, federation.DefaultNetwork)
}

func (m *model) endpointContext() endpointContext {
	return endpointContext{
		pods: m.pods, podsAt: m.podsAt, now: m.now(), nodes: m.nodes, defaults: m.defaults,
		vips: m.vips, network: m.network(),
	}
}

func (m *model) putService(k key, s *service) {
	swap(&m.used[kindServices], m.services[k], s)
	if old := m.services[k]; old != nil {
		for _, vip := range old.shard.VIPs {
			if m.vips[vip.Addr()] == k {
				delete(m.vips, vip.Addr())
				m.touchSlices(m.slices.atAddress[vip.Addr()])
			}
		}
	}
	put(m.services, k, s)
	if s != nil {
		for _, vip := range s.shard.VIPs {
			m.vips[vip.Addr()] = k
			m.touchSlices(m.slices.atAddress[vip.Addr()])
		}
	}
	m.dirtyServices[k] = struct{}{}
}

func (m *model) putSlice(k key, s *slice) {
	if s != nil && s.service == "" {
		s = nil
	}
	old := m.slices.all[k]
	swap(&m.used[kindSlices], old, s)
	put(m.slices.all, k, s)
	again := old != nil && s != nil && s.refersAs(old)
	if old != nil {
		m.dirtyServices[old.owner()] = struct{}{}
		if !again {
			m.slices.unrefer(old)
		}
	}
	if s != nil {
		m.dirtyServices[s.owner()] = struct{}{}
		if !again {
			m.slices.refer(s)
		}
	}
}

func (m *model) putPod(k key, p *pod) {
	old := m.pods[k]
	swap(&m.used[kindPods], old, p)
	if old != nil {
		m.nodePods.remove(old.node, k)
		if !old.staysBehind(p) {
			m.remember(old)
		}
	}
	m.unindexAddresses(old)
	put(m.pods, k, p)
	m.indexAddresses(p)
	if p != nil {
		m.nodePods.add(p.node, k)
	}
	m.dirtyPods[k] = struct{}{}
	m.touchSlices(m.slices.ofPod[k])
}

// putNode ignores what changes nothing, such as a heartbeat.
func (m *model) putNode(k key, n *node) {
	name := k.Name
	old := m.nodes[name]
	swap(&m.used[kindNodes], old, n)
	put(m.nodes, name, n)
	if old != nil && n != nil && old.locality == n.locality {
		return
	}
	for k := range m.nodePods[name].all() {
		m.dirtyPods[k] = struct{}{}
		m.touchSlices(m.slices.ofPod[k])
	}
	m.touchSlices(m.slices.onNode[name])
}

// putDefaults ignores what changes nothing, such as other labels.
func (m *model) putDefaults(k key, d *defaults) {
	old := m.defaults[k]
	swap(&m.used[kindNamespaces], old, d)
	put(m.defaults, k, d)
	if old.distributes() == d.distributes() {
		return
	}
	for service := range m.services {
		if service.Namespace == k.Name {
			m.dirtyServices[service] = struct{}{}
		}
	}
}

// setNetwork takes the network that the cluster names itself.
func (m *model) setNetwork(id federation.NetworkID) {
	if m.cluster.Network == id {
		return
	}
	before := m.network()
	m.cluster.Network = id
	m.identityDirty = true
	if m.network() == before {
		return
	}
	for k := range m.services {
		m.dirtyServices[k] = struct{}{}
	}
	for k := range m.pods {
		m.dirtyPods[k] = struct{}{}
	}
}

func (m *model) touchSlices(of set[key]) {
	for k := range of.all() {
		m.dirtyServices[m.slices.all[k].owner()] = struct{}{}
	}
}

// known returns the keys of a kind, for the comparison with a complete list.
func (m *model) known(kind kind) map[key]string {
	known := m.kept(kind)
	for at := range m.faulty {
		if at.kind == kind {
			if known == nil {
				known = map[key]string{}
			}
			known[at.k] = "" // whatever the list says, it is looked at again
		}
	}
	return known
}

// replace takes a complete list of one kind and tells whether anything differs.
// With afresh, versions prove nothing: the server's history may have changed.
func (m *model) replace(kind kind, items []object, afresh bool) bool {
	before := m.known(kind)
	differs := false
	for _, o := range items {
		b := o.base()
		if version, ok := before[b.k]; afresh || !ok || version != b.version || version == "" {
			m.set(o)
			_, isFaulty := o.(*faulty)
			differs = differs || !rows[kind].identity && !isFaulty
		}
		delete(before, b.k)
	}
	for k := range before {
		m.remove(kind, k)
		differs = differs || !rows[kind].identity
	}
	return differs
}

func versions[T interface {
	comparable
	object
}](in map[key]T) map[key]string {
	out := make(map[key]string, len(in))
	for k, o := range in {
		out[k] = o.base().version
	}
	return out
}

func put[K comparable, T any](in map[K]*T, k K, v *T) {
	if v == nil {
		delete(in, k)
		return
	}
	in[k] = v
}
