package federation

import "isthmus.dev/isthmus/internal/btree"

// Next is the step of the whole program: the snapshot that follows from an
// edit, and what differs. It is pure: nothing but its arguments is read, the
// snapshot is not changed, nothing is published. An edit that changes nothing
// returns the very same snapshot. The order in which edits of different sources
// come does not show in the result, except for version numbers.
func Next(s *Snapshot, e Edit) (*Snapshot, ChangeSet) {
	d := newDraft(s)
	d.applySettings(e.Settings)
	d.applyObjects(e.Objects)
	d.applyPlacement()
	d.applyResolved(e.Resolved)
	d.applyVerdicts(e.Verdicts)
	d.applyClusters(e.Clusters)
	d.applySource(e)
	d.applyServices(e.Source, e.Services)
	d.applyWorkloads(e.Source, e.Workloads)
	d.settle()
	d.settleNetworks()
	d.applyProblems(e.Source, e.Problems)
	d.applyRevision(e.Revision)
	if !d.changed {
		return s, ChangeSet{From: s.version, To: s.version}
	}
	next := d.commit()
	return next, next.ChangesSince(s.version)
}

// draft is a snapshot in the making.
type draft struct {
	base       *Snapshot
	services   btree.Txn[*Service]
	members    btree.Txn[struct{}]
	ports      btree.Txn[struct{}]
	vips       btree.Txn[struct{}]
	aliases    btree.Txn[ServiceKey]
	names      btree.Txn[ServiceKey]
	workloads  btree.Txn[*Workload]
	homes      btree.Txn[int]
	selectors  btree.Txn[ServiceKey]
	selectedBy btree.Txn[int]
	labels     btree.Txn[struct{}]
	visited    int // workloads that selectors looked at: what finding them costs
	bindings   btree.Txn[ServiceKey]
	addresses  btree.Txn[struct{}]
	problems   btree.Txn[Problem]
	clusters   btree.Txn[*Cluster]
	renamed    bool // aliases of clusters changed
	networks   networksTxn
	objects    objectsTxn
	revision   int64
	settings   Settings
	version    uint64
	changed    bool
	entries    []string            // what changed, for the journal
	touched    map[AddressKey]bool // where residents came, went or changed
	unsettled                      // services that wait for settle
}

func newDraft(s *Snapshot) *draft {
	return &draft{
		base: s, services: s.services.Txn(), members: s.members.Txn(), ports: s.ports.Txn(), vips: s.vips.Txn(), aliases: s.aliases.Txn(), names: s.names.Txn(),
		workloads: s.workloads.Txn(), homes: s.homes.Txn(), selectors: s.selectors.Txn(), selectedBy: s.selectedBy.Txn(), labels: s.labels.Txn(), bindings: s.bindings.Txn(), addresses: s.addresses.Txn(), problems: s.problems.Txn(),
		clusters: s.clusters.Txn(), networks: s.networks.txn(), objects: s.objects.txn(), revision: s.revision, settings: s.settings, version: s.version + 1,
		touched: map[AddressKey]bool{}, unsettled: newUnsettled(),
	}
}

func (d *draft) commit() *Snapshot {
	for at := range d.touched {
		d.record(addressEntry, at.sortKey())
	}
	named := d.nameClusters()
	return &Snapshot{
		version: d.version, services: d.services.Commit(), members: d.members.Commit(), ports: d.ports.Commit(), vips: d.vips.Commit(), aliases: d.aliases.Commit(), names: d.names.Commit(),
		workloads: d.workloads.Commit(), homes: d.homes.Commit(), selectors: d.selectors.Commit(), selectedBy: d.selectedBy.Commit(), labels: d.labels.Commit(), bindings: d.bindings.Commit(), addresses: d.addresses.Commit(), problems: d.problems.Commit(),
		clusters: d.clusters.Commit(), named: named, networks: d.networks.commit(), objects: d.objects.commit(), revision: d.revision, journal: d.base.journal.after(d.version, d.entries), settings: d.settings, superseded: make(chan struct{}),
	}
}

func (d *draft) record(kind entryKind, key string) {
	d.changed = true
	d.entries = append(d.entries, string(kind)+key)
}

// applyRevision notes how far the store of record has come; readers that wait for
// a revision need not be told of anything else.
func (d *draft) applyRevision(now int64) {
	if now > d.revision {
		d.revision, d.changed = now, true
	}
}

func (d *draft) applySettings(now *Settings) {
	if now == nil || now.equal(&d.settings) {
		return
	}
	d.settings = *now
	d.record(settingEntry, "")
	d.networks.all = true
	d.remergeAll()
}

// remergeAll merges every service anew; only a change of settings needs it.
func (d *draft) remergeAll() {
	d.services.Walk(func(_ string, svc *Service) bool { d.dirty[svc.Key] = true; return false })
}
