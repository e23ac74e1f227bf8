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
	base      *Snapshot
	services  servicesTxn
	members   btree.Txn[struct{}]
	workloads workloadsTxn
	bindings  btree.Txn[ServiceKey]
	addresses addressesTxn
	problems  btree.Txn[Problem]
	clusters  clustersTxn
	networks  networksTxn
	objects   objectsTxn
	revision  int64
	settings  Settings
	version   uint64
	changed   bool
	entries   []string // what changed, for the journal
	unsettled          // services that wait for settle
}

// servicesTxn are the services of a draft, and their indices.
type servicesTxn struct {
	btree.Txn[*Service]
	ports   btree.Txn[struct{}]
	vips    btree.Txn[struct{}]
	aliases btree.Txn[ServiceKey]
	names   btree.Txn[ServiceKey]
}

// workloadsTxn are the workloads of a draft, and what finds those that a selector
// selects.
type workloadsTxn struct {
	btree.Txn[*Workload]
	homes      btree.Txn[int]
	selectors  btree.Txn[ServiceKey]
	selectedBy btree.Txn[int]
	labels     btree.Txn[struct{}]
	visited    int // workloads that selectors looked at: what finding them costs
}

// addressesTxn are the residents of addresses.
type addressesTxn struct {
	btree.Txn[struct{}]
	touched map[AddressKey]bool // where residents came, went or changed
}

// clustersTxn are the clusters of a draft.
type clustersTxn struct {
	btree.Txn[*Cluster]
	renamed bool // aliases of clusters changed
}

func newDraft(s *Snapshot) *draft {
	return &draft{
		base:     s,
		services: servicesTxn{Txn: s.services.Txn(), ports: s.ports.Txn(), vips: s.vips.Txn(), aliases: s.aliases.Txn(), names: s.names.Txn()},
		workloads: workloadsTxn{
			Txn: s.workloads.Txn(), homes: s.homes.Txn(), selectors: s.selectors.Txn(), selectedBy: s.selectedBy.Txn(), labels: s.labels.Txn(),
		},
		members: s.members.Txn(), bindings: s.bindings.Txn(), addresses: addressesTxn{Txn: s.addresses.Txn(), touched: map[AddressKey]bool{}}, problems: s.problems.Txn(),
		clusters: clustersTxn{Txn: s.clusters.Txn()}, networks: s.networks.txn(), objects: s.objects.txn(), revision: s.revision, settings: s.settings, version: s.version + 1,
		unsettled: newUnsettled(),
	}
}

func (d *draft) commit() *Snapshot {
	for at := range d.addresses.touched {
		d.record(addressEntry, at.sortKey())
	}
	named := d.nameClusters()
	return &Snapshot{
		version: d.version, services: d.services.Commit(), members: d.members.Commit(), ports: d.services.ports.Commit(), vips: d.services.vips.Commit(), aliases: d.services.aliases.Commit(), names: d.services.names.Commit(),
		workloads: d.workloads.Commit(), homes: d.workloads.homes.Commit(), selectors: d.workloads.selectors.Commit(), selectedBy: d.workloads.selectedBy.Commit(), labels: d.workloads.labels.Commit(), bindings: d.bindings.Commit(), addresses: d.addresses.Commit(), problems: d.problems.Commit(),
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
