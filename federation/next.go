package federation

import "time"

// Next is the step of the whole program: the snapshot that follows from an
// edit, and what differs. It is pure: nothing but its arguments is read, the
// snapshot is not changed, nothing is published. An edit that changes nothing
// returns the very same snapshot. The order in which edits of different sources
// come does not show in the result, except for version numbers.
func Next(s *Snapshot, e Edit) (*Snapshot, ChangeSet) {
	d := newDraft(s)
	d.applyClock(e.Clock)
	in, ex := d.intake(), d.exporting()
	m := d.merging()
	d.applySettings(e.Settings)
	d.objects.apply(e.Objects, d.networks.noteObject, ex.noteObject, m.noteObject)
	m.tick(s.clock)
	d.placing.apply()
	d.networks.applyResolved(e.Resolved)
	d.networks.applyVerdicts(e.Verdicts)
	d.keySets.apply(e.KeySets)
	if gone := e.Clusters.removed(d.clusters.ids()); len(gone) > 0 {
		in.withdraw(gone)
		ex.recompute()
		m.recompute() // while there are the clusters to count down
		d.clusters.remove(gone)
	}
	in.setSpecs(e.Clusters.Set)
	in.apply(e)
	ex.recompute()
	m.recompute()
	d.networking().recompute(d.networkSources(), s.networks.notes)
	d.clusters.applyProblems(e.Source, e.Problems)
	d.applyRevision(e.Revision)
	if !d.changes.any {
		return s, ChangeSet{From: s.version, To: s.version}
	}
	next := d.commit()
	return next, next.ChangesSince(s.version)
}

// draft is a snapshot in the making: its parts. What edits several of them is a stage,
// which has those that it needs.
type draft struct {
	base      *Snapshot
	changes   changes
	settings  Settings
	revision  int64
	clock     time.Time
	objects   objectsTxn
	networks  networksTxn
	clusters  clustersTxn
	services  servicesTxn
	workloads workloadsTxn
	bindings  bindingsTxn
	addresses addressesTxn
	keySets   keySetsTxn

	contributions contributions
	placing       placing
}

func newDraft(s *Snapshot) *draft {
	d := &draft{
		base: s, changes: changes{version: s.version + 1}, settings: s.settings, revision: s.revision, clock: s.clock,
		objects: s.objects.txn(), networks: s.networks.txn(), clusters: s.clusters.txn(), services: s.services.txn(),
		workloads: s.workloads.txn(),
		bindings:  bindingsTxn{Txn: s.bindings.Txn()}, addresses: addressesTxn{Txn: s.addresses.Txn(), touched: map[AddressKey]bool{}},
		keySets: keySetsTxn{Txn: s.keySets.Txn()},
	}
	d.objects.changes, d.networks.changes = &d.changes, &d.changes
	d.clusters.changes, d.keySets.changes = &d.changes, &d.changes
	d.clusters.networks = &d.networks
	d.contributions.services = &d.services
	d.contributions.clear()
	d.bindings.contributions = &d.contributions
	d.placing = placing{
		objects: &d.objects, networks: &d.networks, clusters: &d.clusters, workloads: &d.workloads,
		addresses: &d.addresses, contributions: &d.contributions,
	}
	return d
}

func (d *draft) intake() intake { return intake{d.contributed()} }

func (d *draft) exporting() exporting {
	return exporting{objects: &d.objects, contributions: &d.contributions, touched: map[ServiceKey]bool{}}
}

func (d *draft) merging() merging {
	return merging{contributed: d.contributed(), policy: &d.settings.Addresses, objects: &d.objects, clock: d.clock}
}

// contributed are the parts of a draft that hold what registries contribute and what follows
// from it. They are taken in and merged in two stages.
type contributed struct {
	clusters      *clustersTxn
	networks      *networksTxn
	services      *servicesTxn
	workloads     *workloadsTxn
	bindings      *bindingsTxn
	addresses     *addressesTxn
	contributions *contributions
	placing       *placing
	changes       *changes
}

func (d *draft) contributed() contributed {
	return contributed{
		clusters: &d.clusters, networks: &d.networks, services: &d.services, workloads: &d.workloads,
		bindings: &d.bindings, addresses: &d.addresses,
		contributions: &d.contributions, placing: &d.placing, changes: &d.changes,
	}
}

func (d *draft) networking() networking {
	return networking{networks: &d.networks, clusters: &d.clusters, changes: &d.changes}
}

func (d *draft) commit() *Snapshot {
	for at := range d.addresses.touched {
		d.changes.record(addressEntry, at.sortKey())
	}
	return &Snapshot{
		version: d.changes.version, settings: d.settings, revision: d.revision, clock: d.clock,
		journal: d.base.journal.after(d.changes.version, d.changes.entries),
		objects: d.objects.commit(), networks: d.networks.commit(), clusters: d.clusters.commit(), services: d.services.commit(),
		workloads: d.workloads.commit(),
		bindings:  d.bindings.Commit(), addresses: d.addresses.Commit(), keySets: d.keySets.Commit(), superseded: make(chan struct{}),
	}
}

// changes are what a draft changes.
type changes struct {
	version uint64 // that of the draft
	any     bool
	entries []string // for the journal
}

func (c *changes) record(kind entryKind, key string) {
	c.any = true
	c.entries = append(c.entries, string(kind)+key)
}

// applyRevision notes the revision that the store of record has reached; readers that wait for
// a revision need not be told of anything else.
func (d *draft) applyRevision(now int64) {
	if now > d.revision {
		d.revision, d.changes.any = now, true
	}
}

// applyClock notes the time; it never goes back.
func (d *draft) applyClock(now time.Time) {
	if now.After(d.clock) {
		d.clock, d.changes.any = now, true
	}
}

func (d *draft) applySettings(now *Settings) {
	if now == nil || now.equal(&d.settings) {
		return
	}
	d.settings = *now
	d.changes.record(settingEntry, "")
	d.contributions.markAll()
}
