package federation

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
)

// placement is the network that Network objects give to endpoints and workloads that
// name none themselves: by address, else by cluster.
type placement struct {
	ranges   []placedRange           // the longest first
	clusters map[ClusterID]NetworkID // of every Network object, the oldest first
}

type placedRange struct {
	prefix   netip.Prefix
	network  NetworkID
	clusters []ClusterID // those of the network, if it lists any
}

func (p placement) empty() bool { return len(p.ranges) == 0 && len(p.clusters) == 0 }

func (p placement) equal(o placement) bool {
	return maps.Equal(p.clusters, o.clusters) && slices.EqualFunc(p.ranges, o.ranges, func(a, b placedRange) bool {
		return a.prefix == b.prefix && a.network == b.network && slices.Equal(a.clusters, b.clusters)
	})
}

// networkOf is the network of something in the cluster at the address, which its
// registry put into a network. A label that names another network than the
// cluster's stands.
func (p placement) networkOf(c *Cluster, said NetworkID, at Address) NetworkID {
	said = cmp.Or(said, DefaultNetwork)
	if p.empty() || said != c.filledIn() {
		return said
	}
	if ip, ok := at.IP(); ok {
		if id := p.byRange(c, ip); id != "" {
			return id
		}
	}
	return c.Network()
}

// byRange finds the network of the longest range that holds the address. Where
// two networks have the same range, the address says nothing, unless one of them
// is the cluster's.
func (p placement) byRange(c *Cluster, ip netip.Addr) NetworkID {
	best, found := -1, NetworkID("")
	for _, r := range p.ranges {
		if best > r.prefix.Bits() {
			break
		}
		switch {
		case !r.prefix.Contains(ip) || !r.covers(c):
		case best < 0 || r.network == c.Network():
			best, found = r.prefix.Bits(), r.network
		case found != r.network && found != c.Network():
			found = ""
		}
	}
	return found
}

// covers is false for clusters that have a network, where the range is that of
// other clusters.
func (r placedRange) covers(c *Cluster) bool {
	if len(r.clusters) == 0 || c == nil || slices.Contains(r.clusters, c.ID) {
		return true
	}
	return c.Spec.Network == "" && c.Declared == "" && c.Identity.Network == ""
}

// placementOf reads the Network objects.
func placementOf(objects []*Object) placement {
	p := placement{}
	slices.SortFunc(objects, func(a, b *Object) int { return compareOlder(a, b) })
	for _, o := range objects {
		n, ok := o.Spec.(*NetworkObject)
		if !ok {
			continue
		}
		clusters := slices.Sorted(slices.Values(n.Clusters))
		for _, prefix := range n.CIDRs {
			p.ranges = append(p.ranges, placedRange{prefix: prefix.Masked(), network: NetworkID(o.Key.Name), clusters: clusters})
		}
		for _, id := range clusters {
			if p.clusters == nil {
				p.clusters = map[ClusterID]NetworkID{}
			}
			if _, taken := p.clusters[id]; !taken {
				p.clusters[id] = NetworkID(o.Key.Name)
			}
		}
	}
	slices.SortStableFunc(p.ranges, func(a, b placedRange) int {
		return cmp.Or(cmp.Compare(b.prefix.Bits(), a.prefix.Bits()), a.prefix.Addr().Compare(b.prefix.Addr()), cmp.Compare(a.network, b.network))
	})
	return p
}

func compareOlder(a, b *Object) int {
	return cmp.Or(a.Created.Compare(b.Created), a.Key.Compare(b.Key))
}

// placing puts everything into networks.
type placing struct {
	objects       *objectsTxn
	networks      *networksTxn
	clusters      *clustersTxn
	workloads     *workloadsTxn
	addresses     *addressesTxn
	contributions *contributions
}

// apply follows changed Network objects: everything that they place is looked at
// again, as for a change of settings.
func (p *placing) apply() {
	if !p.networks.zonesAt {
		return
	}
	var objects []*Object
	p.objects.byKey.WalkPrefix(NetworkKind.prefix(), func(_ string, o *Object) bool {
		objects = append(objects, o)
		return false
	})
	now := placementOf(objects)
	if now.equal(p.networks.placement) {
		return
	}
	p.moveWorkloads("", func() {
		p.networks.placement = now
		p.clusters.declare()
	})
	p.contributions.markAll()
}

// changeCluster stores the cluster and moves what that places elsewhere.
func (p *placing) changeCluster(now *Cluster) {
	old, had := p.clusters.Get(string(now.ID))
	if !had || p.networks.empty() || old.filledIn() == now.filledIn() && old.Network() == now.Network() {
		p.clusters.store(now)
		return
	}
	p.moveWorkloads(clusterPrefix(now.ID), func() { p.clusters.store(now) })
	p.contributions.markAll() // selectors and bindings take its workloads anywhere
}

// moveWorkloads keeps the index by address true over a change of the places of
// workloads below the prefix.
func (p *placing) moveWorkloads(prefix string, change func()) {
	type moved struct {
		owner    addressOwner
		workload *Workload
		before   []AddressKey
	}
	var all []moved
	p.workloads.WalkPrefix(prefix, func(k string, w *Workload) bool {
		shard := shardKeyOf(k)
		r := addressOwner{shard: shard, workload: workloadKeyOf(k, shard), isPod: true}
		all = append(all, moved{r, w, p.addressesOf(shard, w)})
		return false
	})
	change()
	for _, m := range all {
		p.addresses.moveWorkload(m.owner, m.before, p.addressesOf(m.owner.shard, m.workload))
	}
}

// addressesOf is where the workload lives; w may be nil.
func (p *placing) addressesOf(shard ShardKey, w *Workload) []AddressKey {
	if w == nil {
		return nil
	}
	c, _ := p.clusters.Get(string(shard.Cluster))
	all := make([]AddressKey, len(w.Addresses))
	for i, a := range w.Addresses {
		all[i] = AddressKey{Network: p.networks.networkOf(c, w.Network, IPAddress(a)), Addr: a.Unmap()}
	}
	return all
}

// place puts the endpoints of a shard where Network objects say. It returns the
// same slice where nothing moves.
func (p *placing) place(shard ShardKey, endpoints []Endpoint) []Endpoint {
	if p.networks.empty() {
		return endpoints
	}
	out := endpoints
	for i := range endpoints {
		e := &endpoints[i]
		c, _ := p.clusters.Get(string(cmp.Or(e.Cluster, shard.Cluster)))
		id := p.networks.networkOf(c, e.Network, e.Address)
		if id == e.Network {
			continue
		}
		if &out[0] == &endpoints[0] {
			out = slices.Clone(endpoints)
		}
		out[i].Network = id
	}
	if len(out) > 0 && &out[0] != &endpoints[0] {
		slices.SortStableFunc(out, compareEndpoints)
	}
	return out
}
