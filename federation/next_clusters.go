package federation

import (
	"iter"
	"slices"

	"isthmus.dev/isthmus/internal/btree"
)

// clustersTxn are the clusters of a draft, and what is wrong in them.
type clustersTxn struct {
	btree.Txn[*Cluster]
	problems btree.Txn[Problem]
	about    btree.Txn[struct{}]
	before   clusterIndex
	renamed  bool // aliases of clusters changed
	networks *networksTxn
	changes  *changes
}

func (x clusterIndex) txn() clustersTxn {
	return clustersTxn{Txn: x.byID.Txn(), problems: x.problems.Txn(), about: x.about.Txn(), before: x}
}

func (x *clustersTxn) commit() clusterIndex {
	out := clusterIndex{byID: x.Commit(), problems: x.problems.Commit(), about: x.about.Commit(), named: x.before.named}
	if x.renamed {
		out.named = nameClusters(out.byID)
	}
	return out
}

func (x *clustersTxn) ids() iter.Seq[ClusterID] {
	return func(yield func(ClusterID) bool) {
		x.Walk(func(_ string, c *Cluster) bool { return !yield(c.ID) })
	}
}

func (x *clustersTxn) precedence(id ClusterID) int {
	c, _ := x.Get(string(id))
	return c.precedence()
}

// store puts the cluster into the tree and into its network.
// Where its network may change, it is for placing to call it.
func (x *clustersTxn) store(now *Cluster) {
	now.Declared = x.networks.clusters[now.ID]
	old, had := x.Get(string(now.ID))
	x.Set(string(now.ID), now)
	switch {
	case !had:
		x.networks.move(now.ID, "", now.Network())
	case old.Network() != now.Network():
		x.networks.move(now.ID, old.Network(), now.Network())
	}
}

// declare follows the Network objects, which list clusters.
func (x *clustersTxn) declare() {
	var moved []Cluster
	x.Walk(func(_ string, c *Cluster) bool {
		if c.Declared != x.networks.clusters[c.ID] {
			moved = append(moved, *c)
		}
		return false
	})
	for i := range moved {
		x.store(&moved[i])
		x.changes.record(clusterEntry, string(moved[i].ID))
	}
}

func (x *clustersTxn) remove(gone []ClusterID) {
	for _, id := range gone {
		if old, had := x.Delete(string(id)); had {
			x.networks.move(id, old.Network(), "")
			x.renamed = x.renamed || old.Spec.Aliases != ""
			x.changes.record(clusterEntry, string(id))
		}
	}
}

// of is the cluster of the source, known or not.
func (x *clustersTxn) of(source ShardKey) Cluster {
	if c, ok := x.Get(string(source.Cluster)); ok {
		return *c
	}
	return Cluster{
		Declared: x.networks.clusters[source.Cluster], ID: source.Cluster, Spec: ClusterSpec{Provider: source.Provider},
		Status: RegistryStatus{Phase: Pending},
	}
}

// introduce lists a cluster as soon as the first edit or status of it comes.
func (x *clustersTxn) introduce(source ShardKey) {
	if _, known := x.Get(string(source.Cluster)); !known {
		x.count(source, func(*Cluster) {})
		x.changes.record(clusterEntry, string(source.Cluster))
	}
}

// count changes numbers of the cluster; they are shown, but no change to wait for.
func (x *clustersTxn) count(source ShardKey, change func(*Cluster)) {
	now := x.of(source)
	change(&now)
	x.store(&now)
}

// Problems are kept apart by who found them, so that neither can remove the
// other's.
const (
	problemOfRegistry = "r"
	problemOfNext     = "n"
	problemOfBinding  = "b" // also of Next
)

func (x *clustersTxn) applyProblems(source ShardKey, delta Delta[string, Problem]) {
	for _, name := range delta.removed(x.problemsOf(source, problemOfRegistry)) {
		x.setProblem(source, problemOfRegistry, name, nil)
	}
	for name, p := range delta.Set {
		x.setProblem(source, problemOfRegistry, name, &p)
	}
}

// dropProblems removes all problems of that origin.
func (x *clustersTxn) dropProblems(source ShardKey, origin string) {
	for _, name := range slices.Collect(x.problemsOf(source, origin)) {
		x.setProblem(source, origin, name, nil)
	}
}

// problemsOf yields the names of the problems of that origin.
func (x *clustersTxn) problemsOf(source ShardKey, origin string) iter.Seq[string] {
	return func(yield func(string) bool) {
		prefix := source.prefix() + origin + nul
		x.problems.WalkPrefix(prefix, func(k string, _ Problem) bool { return !yield(k[len(prefix):]) })
	}
}

func (x *clustersTxn) setProblem(source ShardKey, origin, name string, now *Problem) {
	at := source.prefix() + origin + nul + name
	old, had := x.problems.Get(at)
	switch {
	case now == nil && !had, now != nil && had && old == *now:
		return
	case now == nil:
		x.problems.Delete(at)
		x.count(source, func(c *Cluster) { c.Problems-- })
	default:
		x.problems.Set(at, *now)
		if !had {
			x.count(source, func(c *Cluster) { c.Problems++ })
		}
	}
	if had {
		of := ProblemSubject{source.Cluster, old.Object}.prefix()
		x.about.Delete(of + at)
		x.changes.record(problemEntry, of)
	}
	if now != nil {
		of := ProblemSubject{source.Cluster, now.Object}.prefix()
		x.about.Set(of+at, struct{}{})
		x.changes.record(problemEntry, of)
	}
	x.changes.record(clusterEntry, string(source.Cluster))
}
