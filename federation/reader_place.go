package federation

// What is derived of a proxy's own place is noted like everything else: when none
// of what was read changed, it is what it was (R32).

// Registered is Snapshot.Registered, noted: a workload may come to one of the
// addresses in any network.
func (r *Reader) Registered(p Place, name WorkloadKey) (Registration, bool) {
	note(&r.deps.Clusters, p.Cluster)
	for _, addr := range p.Addresses {
		note(&r.deps.Anywhere, addr.Unmap())
	}
	return r.snapshot.Registered(p, name)
}

// NetworkOf is Snapshot.NetworkOf, noted.
func (r *Reader) NetworkOf(p Place) NetworkID {
	r.notePlacement(p)
	return r.snapshot.NetworkOf(p)
}

// Placed is Snapshot.Placed, noted.
func (r *Reader) Placed(p Place) (NetworkID, bool) {
	r.notePlacement(p)
	return r.snapshot.Placed(p)
}

// notePlacement notes what decides in which network a place is: its cluster, and
// all Network objects.
func (r *Reader) notePlacement(p Place) {
	note(&r.deps.Clusters, p.Cluster)
	_ = r.SelectObjects(NetworkKind, func(*Object) bool { return true })
}

// ProxyLabels is Snapshot.ProxyLabels, noted.
func (r *Reader) ProxyLabels() []string {
	r.deps.Labels = true
	return r.snapshot.ProxyLabels()
}
