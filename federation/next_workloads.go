package federation

import (
	"iter"

	"isthmus.dev/isthmus/internal/btree"
)

// workloadsTxn are the workloads of a draft, and what finds those that a selector
// selects.
type workloadsTxn struct {
	btree.Txn[*Workload]
	namespaces btree.Txn[int]
	selectors  btree.Txn[ServiceKey]
	selectedBy btree.Txn[int]
	labels     btree.Txn[struct{}]
	visited    int // workloads that selectors looked at: what finding them costs
}

func (x workloadIndex) txn() workloadsTxn {
	return workloadsTxn{
		Txn: x.byKey.Txn(), namespaces: x.namespaces.Txn(), selectors: x.selectors.Txn(),
		selectedBy: x.selectedBy.Txn(), labels: x.labels.Txn(),
	}
}

func (x *workloadsTxn) commit() workloadIndex {
	return workloadIndex{
		byKey: x.Commit(), namespaces: x.namespaces.Commit(), selectors: x.selectors.Commit(), selectedBy: x.selectedBy.Commit(),
		labels: x.labels.Commit(),
	}
}

// of yields the workloads of the source.
func (x *workloadsTxn) of(source ShardKey) iter.Seq[WorkloadKey] {
	return func(yield func(WorkloadKey) bool) {
		x.WalkPrefix(source.prefix(), func(k string, _ *Workload) bool { return !yield(workloadKeyOf(k, source)) })
	}
}

// set sets the workload to what its source reports about it; nil removes it.
func (x *workloadsTxn) set(source ShardKey, key WorkloadKey, now *Workload) (old *Workload, changed bool) {
	at := workloadSortKey(source, key)
	old, _ = x.Get(at)
	switch {
	case old == nil && now == nil, old != nil && now != nil && old.Equal(now):
		return old, false
	case now == nil:
		x.Delete(at)
		x.countInNamespace(source, key.Namespace, -1)
	default:
		x.Set(at, now)
		if old == nil {
			x.countInNamespace(source, key.Namespace, 1)
		}
	}
	x.indexLabels(source, key, old, now)
	return old, true
}
