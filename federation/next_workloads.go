package federation

func (d *draft) applyWorkloads(source ShardKey, delta Delta[WorkloadKey, *Workload]) {
	if delta.Full {
		prefix := source.prefix()
		var gone []WorkloadKey
		d.workloads.WalkPrefix(prefix, func(k string, _ *Workload) bool {
			gone = append(gone, workloadKeyOf(k, source))
			return false
		})
		for _, key := range gone {
			if delta.removes(key) {
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
	at := workloadSortKey(source, key)
	old, _ := d.workloads.Get(at)
	switch {
	case old == nil && now == nil, old != nil && now != nil && old.Equal(now):
		return
	case now == nil:
		d.workloads.Delete(at)
		d.workloads.countHome(source, key.Namespace, -1)
	default:
		d.workloads.Set(at, now)
		if old == nil {
			d.workloads.countHome(source, key.Namespace, 1)
		}
	}
	d.changed = true
	d.workloads.indexLabels(source, key, old, now)
	d.reselect(source.Provider, key.Namespace, old, now)
	after := d.workloadAddresses(source, now)
	d.addresses.residents().move(resident{shard: source, workload: key, isPod: true}, d.workloadAddresses(source, old), after)
	d.addresses.residents().touchAll(after)
}

// Problems are kept apart by who found them, so that neither can remove the
// other's.
const (
	problemOfRegistry = "r"
	problemOfNext     = "n"
	problemOfBinding  = "b" // also of Next
)

func (d *draft) applyProblems(source ShardKey, delta Delta[string, Problem]) {
	if delta.Full {
		d.dropProblems(source, problemOfRegistry, delta.removes)
	}
	for _, name := range delta.Gone {
		d.setProblem(source, problemOfRegistry, name, nil)
	}
	for name, p := range delta.Set {
		d.setProblem(source, problemOfRegistry, name, &p)
	}
}

func (d *draft) dropProblems(source ShardKey, origin string, drop func(name string) bool) {
	prefix := source.prefix() + origin + nul
	var names []string
	d.problems.WalkPrefix(prefix, func(k string, _ Problem) bool {
		if name := k[len(prefix):]; drop(name) {
			names = append(names, name)
		}
		return false
	})
	for _, name := range names {
		d.setProblem(source, origin, name, nil)
	}
}

func (d *draft) setProblem(source ShardKey, origin, name string, now *Problem) {
	at := source.prefix() + origin + nul + name
	old, had := d.problems.Get(at)
	switch {
	case now == nil && !had, now != nil && had && old == *now:
		return
	case now == nil:
		d.problems.Delete(at)
		d.updateCluster(source, func(c *Cluster) { c.Problems-- })
	default:
		d.problems.Set(at, *now)
		if !had {
			d.updateCluster(source, func(c *Cluster) { c.Problems++ })
		}
	}
	d.record(clusterEntry, string(source.Cluster))
}
