package federation

import (
	"iter"
	"slices"
)

// intake applies what an edit says about clusters, services and workloads, and marks the
// services that must be merged because of it.
type intake struct {
	contributed
}

// apply applies what a registry says about its own cluster.
func (in *intake) apply(e Edit) {
	if !e.Services.empty() || !e.Workloads.empty() || !e.Problems.empty() {
		in.clusters.introduce(e.Source)
	}
	if e.Services.Full {
		in.updateCluster(e.Source, func(c *Cluster) { c.Listed = true })
	}
	if e.Identity != nil {
		in.updateCluster(e.Source, func(c *Cluster) { c.Identity = *e.Identity })
	}
	if e.Status != nil {
		in.updateCluster(e.Source, func(c *Cluster) { c.Status = *e.Status })
	}
	in.applyServices(e.Source, e.Services)
	in.applyWorkloads(e.Source, e.Workloads)
}

// updateCluster changes the cluster of the source and records it if that made a difference.
func (in *intake) updateCluster(source ShardKey, change func(*Cluster)) {
	in.clusters.introduce(source)
	before := in.clusters.of(source)
	now := before
	change(&now)
	in.placing.changeCluster(&now)
	if now != before {
		in.changes.record(clusterEntry, string(source.Cluster))
	}
}

// setSpecs sets what operators say of clusters.
func (in *intake) setSpecs(specs map[ClusterID]ClusterSpec) {
	for id, spec := range specs {
		in.setSpec(id, spec)
	}
}

func (in *intake) setSpec(id ClusterID, spec ClusterSpec) {
	old, had := in.clusters.Get(string(id))
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
	in.placing.changeCluster(&now)
	in.changes.record(clusterEntry, string(id))
	in.clusters.renamed = in.clusters.renamed || !had && spec.Aliases != "" || had && old.Spec.Aliases != spec.Aliases
	if old.precedence() != now.precedence() {
		in.contributions.markCluster(id)
	}
}

// withdraw takes back everything that registries of the clusters ever said.
func (in *intake) withdraw(clusters []ClusterID) {
	for _, id := range clusters {
		for _, source := range in.sourcesOf(id) {
			in.applyServices(source, Delta[ServiceKey, *Shard]{Full: true})
			in.applyWorkloads(source, Delta[WorkloadKey, *Workload]{Full: true})
			in.clusters.applyProblems(source, Delta[string, Problem]{Full: true})
			in.clusters.dropProblems(source, problemOfGateway)
		}
	}
}

// sourcesOf finds every shard of the cluster that left anything.
func (in *intake) sourcesOf(id ClusterID) []ShardKey {
	var shards []ShardKey
	prefix := clusterPrefix(id)
	note := func(key string) bool {
		if shard := shardKeyOf(key); !slices.Contains(shards, shard) {
			shards = append(shards, shard)
		}
		return false
	}
	in.services.members.WalkPrefix(prefix, func(k string, _ struct{}) bool { return note(k) })
	in.workloads.WalkPrefix(prefix, func(k string, _ *Workload) bool { return note(k) })
	in.clusters.problems.WalkPrefix(prefix, func(k string, _ Problem) bool { return note(k) })
	return shards
}

func (in *intake) applyServices(source ShardKey, delta Delta[ServiceKey, *Shard]) {
	for _, key := range delta.removed(in.offered(source)) {
		in.setShard(source, key, nil)
		in.clusters.setProblem(source, problemOfNext, key.sortKey(), nil)
	}
	for key, shard := range delta.Set {
		problem := problemWith(key, shard)
		in.clusters.setProblem(source, problemOfNext, key.sortKey(), problem)
		if problem != nil {
			shard = nil
		}
		in.setShard(source, key, shard)
	}
}

// offered yields the services that the source has, and those that cannot be used.
func (in *intake) offered(source ShardKey) iter.Seq[ServiceKey] {
	return func(yield func(ServiceKey) bool) {
		for key := range in.services.from(source.prefix()) {
			if !yield(key) {
				return
			}
		}
		for name := range in.clusters.problemsOf(source, problemOfNext) {
			if !yield(serviceKeyOf(name)) {
				return
			}
		}
	}
}

// setShard sets the shard to what its source reports about the service; nil removes it.
func (in *intake) setShard(source ShardKey, key ServiceKey, shard *Shard) {
	was := in.contributions.of(key).Of(source)
	if was != nil && was.NameOf != "" {
		was = nil
	}
	if shard == nil && was == nil {
		return
	}
	if shard != nil {
		shard = shard.Normal()
		if was != nil && was.Equal(shard) {
			return
		}
	}
	in.contributions.set(key, source, shard)
	in.workloads.indexSelector(source, key, was, shard)
	in.bindings.index(source, key, was, shard)
	in.services.indexNames(source, key, was, shard)
	in.networks.indexClaim(source, key, was, shard)
}

func (in *intake) applyWorkloads(source ShardKey, delta Delta[WorkloadKey, *Workload]) {
	for _, key := range delta.removed(in.workloads.of(source)) {
		in.setWorkload(source, key, nil)
	}
	for key, w := range delta.Set {
		in.setWorkload(source, key, w)
	}
}

func (in *intake) setWorkload(source ShardKey, key WorkloadKey, now *Workload) {
	old, changed := in.workloads.set(source, key, now)
	if !changed {
		return
	}
	in.changes.any = true
	in.reselect(source.Provider, key.Namespace, old, now)
	after := in.placing.addressesOf(source, now)
	in.addresses.moveWorkload(addressOwner{shard: source, workload: key, isPod: true}, in.placing.addressesOf(source, old), after)
	in.addresses.touch(after...)
}

// reselect marks the services that select the workload, before or now.
func (in *intake) reselect(provider Provider, namespace string, old, now *Workload) {
	for _, p := range []Provider{provider, ""} {
		in.workloads.selectors.WalkPrefix(selectorPrefix(namespace, p), func(_ string, key ServiceKey) bool {
			if in.contributions.dirty[key] {
				return false
			}
			for _, shard := range in.contributions.of(key).All() {
				if shard.Selector.selects(old) || shard.Selector.selects(now) {
					in.contributions.dirty[key] = true
				}
			}
			return false
		})
	}
}
