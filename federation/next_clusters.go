package federation

import "slices"

// applyClusters takes up what operators say of clusters. A cluster that is gone
// takes with it everything that any of its registries ever said.
func (d *draft) applyClusters(delta Delta[ClusterID, ClusterSpec]) {
	if delta.Full {
		var gone []ClusterID
		d.clusters.Walk(func(_ string, c *Cluster) bool {
			if delta.removes(c.ID) {
				gone = append(gone, c.ID)
			}
			return false
		})
		delta.Gone = append(gone, delta.Gone...)
	}
	for _, id := range delta.Gone {
		d.removeCluster(id)
	}
	for id, spec := range delta.Set {
		d.setSpec(id, spec)
	}
}

func (d *draft) setSpec(id ClusterID, spec ClusterSpec) {
	old, had := d.clusters.Get(string(id))
	if had && old.Spec == spec {
		return
	}
	now := Cluster{ID: id}
	if had {
		now = *old
	}
	now.Spec = spec
	if now.Status.Phase == "" {
		now.Status.Phase = Pending
	}
	d.changeCluster(&now)
	d.record(clusterEntry, string(id))
	d.clusters.renamed = d.clusters.renamed || !had && spec.Aliases != "" || had && old.Spec.Aliases != spec.Aliases
	if old.precedence() != now.precedence() {
		for _, key := range d.keysOfCluster(id) {
			d.dirty[key] = true
		}
	}
}

func (d *draft) keysOfCluster(id ClusterID) []ServiceKey {
	var keys []ServiceKey
	d.members.WalkPrefix(clusterPrefix(id), func(k string, _ struct{}) bool {
		keys = append(keys, serviceKeyOf(k[len(shardKeyOf(k).prefix()):]))
		return false
	})
	return keys
}

func (d *draft) removeCluster(id ClusterID) {
	for _, source := range d.shardsOf(id) {
		d.applyServices(source, Delta[ServiceKey, *Shard]{Full: true})
		d.applyWorkloads(source, Delta[WorkloadKey, *Workload]{Full: true})
		d.applyProblems(source, Delta[string, Problem]{Full: true})
		d.dropProblems(source, problemOfGateway, func(string) bool { return true })
	}
	d.settle() // while there is a cluster to count down
	if old, had := d.clusters.Delete(string(id)); had {
		d.networks.dirty[old.Network()] = true
		d.clusters.renamed = d.clusters.renamed || old.Spec.Aliases != ""
		d.record(clusterEntry, string(id))
	}
}

// shardsOf finds every shard of the cluster that left anything.
func (d *draft) shardsOf(id ClusterID) []ShardKey {
	var shards []ShardKey
	prefix := clusterPrefix(id)
	note := func(key string) bool {
		if shard := shardKeyOf(key); !slices.Contains(shards, shard) {
			shards = append(shards, shard)
		}
		return false
	}
	d.members.WalkPrefix(prefix, func(k string, _ struct{}) bool { return note(k) })
	d.workloads.WalkPrefix(prefix, func(k string, _ *Workload) bool { return note(k) })
	d.problems.WalkPrefix(prefix, func(k string, _ Problem) bool { return note(k) })
	return shards
}

// applySource takes up what a registry says of its own cluster.
func (d *draft) applySource(e Edit) {
	if !e.Services.empty() || !e.Workloads.empty() || !e.Problems.empty() {
		d.introduce(e.Source)
	}
	if e.Services.Full {
		d.noteCluster(e.Source, func(c *Cluster) { c.Listed = true })
	}
	if e.Identity != nil {
		d.noteCluster(e.Source, func(c *Cluster) { c.Identity = *e.Identity })
	}
	if e.Status != nil {
		d.noteCluster(e.Source, func(c *Cluster) { c.Status = *e.Status })
	}
}

// introduce lists a cluster as soon as it is heard of.
func (d *draft) introduce(source ShardKey) {
	if _, known := d.clusters.Get(string(source.Cluster)); !known {
		d.updateCluster(source, func(*Cluster) {})
		d.record(clusterEntry, string(source.Cluster))
	}
}

// noteCluster changes the cluster of the source and records it if that made a
// difference.
func (d *draft) noteCluster(source ShardKey, change func(*Cluster)) {
	d.introduce(source)
	before := d.cluster(source)
	if now := d.updateCluster(source, change); now != before {
		d.record(clusterEntry, string(source.Cluster))
	}
}

// count keeps the cluster's numbers; they are shown, but no change to wait for.
func (d *draft) count(shard ShardKey, services, endpoints int) {
	if services != 0 || endpoints != 0 {
		d.updateCluster(shard, func(c *Cluster) { c.Services += services; c.Endpoints += endpoints })
	}
}

func (d *draft) cluster(source ShardKey) Cluster {
	if c, ok := d.clusters.Get(string(source.Cluster)); ok {
		return *c
	}
	return Cluster{Declared: d.networks.clusters[source.Cluster], ID: source.Cluster, Spec: ClusterSpec{Provider: source.Provider}, Status: RegistryStatus{Phase: Pending}}
}

func (d *draft) updateCluster(source ShardKey, change func(*Cluster)) Cluster {
	now := d.cluster(source)
	change(&now)
	d.changeCluster(&now)
	return now
}
