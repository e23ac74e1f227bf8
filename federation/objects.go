package federation

import (
	"iter"
	"slices"

	"isthmus.dev/isthmus/internal/btree"
)

// ObjectName is one of the names under which readers look for objects of a kind: for
// those of a cluster, or for those of all proxies.
type ObjectName struct {
	Kind
	Name    string
	Cluster ClusterID
}

// ObjectSet is the set of objects of a kind in a namespace: of those of a cluster, or of
// those of all proxies. Without kind and namespace it is everything of the cluster.
type ObjectSet struct {
	Kind
	Namespace string
	Cluster   ClusterID
}

// AllNamespaces in an ObjectSet means all objects of the kind. No namespace
// has that name.
const AllNamespaces = "*"

func (k Kind) prefix() string { return k.Group + nul + k.Name + nul }

func (n ObjectName) sortKey(key ObjectKey) string { return n.start() + key.SortKey() }

// start is what the keys of all objects of that kind and name begin with.
func (n ObjectName) start() string {
	return n.Group + nul + n.Kind.Name + nul + n.Name + nul
}

func (s ObjectSet) start() string { return s.prefix() + s.Namespace + nul }

// Objects are the configuration objects of a snapshot, and their indexes.
type Objects struct {
	byKey       btree.Map[*Object]
	byName      btree.Map[*Object] // kind, name, key
	labels      btree.Map[int]     // keys of proxies' labels, and how many objects name each
	clusters    btree.Map[int]     // clusters, and how many objects are for each alone
	proxyLabels []string           // those keys, sorted
}

// Revision is the revision of the store of record that the snapshot includes.
func (s *Snapshot) Revision() int64 { return s.revision }

// Object returns the configuration object of that key.
func (s *Snapshot) Object(key ObjectKey) (*Object, bool) { return s.objects.byKey.Get(key.SortKey()) }

// Objects are all configuration objects.
func (s *Snapshot) Objects() *Objects { return &s.objects }

// Len is the number of objects.
func (x *Objects) Len() int { return x.byKey.Len() }

// All yields every object in the order of their keys.
func (x *Objects) All() iter.Seq[*Object] { return walkObjects(x.byKey, "") }

// Of yields the objects of a kind in the order of their keys.
func (x *Objects) Of(kind Kind) iter.Seq[*Object] { return walkObjects(x.byKey, kind.prefix()) }

// In yields the objects of a kind in a namespace in the order of names.
func (x *Objects) In(kind Kind, namespace string) iter.Seq[*Object] {
	return walkObjects(x.byKey, ObjectSet{Kind: kind, Namespace: namespace}.start())
}

// Named yields the objects of a kind that have the name among their Names, in the
// order of their keys.
func (x *Objects) Named(kind Kind, name string) iter.Seq[*Object] {
	return walkObjects(x.byName, ObjectName{Kind: kind, Name: name}.start())
}

// ProxyLabels returns the keys of proxies' labels that decide about objects,
// sorted. As long as the set is the same, so is the slice.
func (x *Objects) ProxyLabels() []string { return x.proxyLabels }

// HasOf reports whether there are objects for the cluster's proxies alone.
func (x *Objects) HasOf(id ClusterID) bool {
	_, has := x.clusters.Get(string(id))
	return has
}

func walkObjects(tree btree.Map[*Object], prefix string) iter.Seq[*Object] {
	return func(yield func(*Object) bool) {
		tree.WalkPrefix(prefix, func(_ string, o *Object) bool { return !yield(o) })
	}
}

// objectsTxn are Objects in the making.
type objectsTxn struct {
	byKey, byName btree.Txn[*Object]
	labels        btree.Txn[int]
	clusters      btree.Txn[int]
	before        *Objects
	relabelled    bool // the set of labels may be another one
	changes       *changes
}

func (x *Objects) txn() objectsTxn {
	return objectsTxn{byKey: x.byKey.Txn(), byName: x.byName.Txn(), labels: x.labels.Txn(), clusters: x.clusters.Txn(), before: x}
}

func (x *objectsTxn) commit() Objects {
	out := Objects{
		byKey: x.byKey.Commit(), byName: x.byName.Commit(), labels: x.labels.Commit(), clusters: x.clusters.Commit(),
		proxyLabels: x.before.proxyLabels,
	}
	if !x.relabelled {
		return out
	}
	var keys []string
	out.labels.Walk(func(k string, _ int) bool { keys = append(keys, k); return false })
	if !slices.Equal(keys, out.proxyLabels) {
		out.proxyLabels = keys
	}
	return out
}

// set puts the object in place of old; either may be nil.
func (x *objectsTxn) set(key ObjectKey, old, now *Object) {
	if old != nil {
		for _, name := range old.Names {
			x.byName.Delete(ObjectName{Kind: key.Of(), Name: name}.sortKey(key))
		}
		x.countLabels(old.ProxyLabels, -1)
		x.countCluster(key, -1)
	}
	if now == nil {
		x.byKey.Delete(key.SortKey())
		return
	}
	x.byKey.Set(key.SortKey(), now)
	for _, name := range now.Names {
		x.byName.Set(ObjectName{Kind: key.Of(), Name: name}.sortKey(key), now)
	}
	x.countLabels(now.ProxyLabels, 1)
	x.countCluster(key, 1)
}

func (x *objectsTxn) countLabels(keys []string, change int) {
	for _, key := range keys {
		if n := count(&x.labels, key, change); n == 0 || n == 1 {
			x.relabelled = true
		}
	}
}

// countCluster counts the objects that are for the proxies of the cluster alone.
func (x *objectsTxn) countCluster(key ObjectKey, change int) {
	if key.Cluster != "" && !IsOfCluster(key.Of()) {
		count(&x.clusters, string(key.Cluster), change)
	}
}

// count changes how many there are, and returns it.
func count(of *btree.Txn[int], key string, change int) int {
	n, _ := of.Get(key)
	n += change
	if n == 0 {
		of.Delete(key)
	} else {
		of.Set(key, n)
	}
	return n
}

// apply applies objects of the configuration, and tells of each that differs.
func (x *objectsTxn) apply(delta Delta[ObjectKey, *Object], differs ...func(ObjectKey)) {
	for _, key := range delta.removed(x.keys()) {
		x.replace(key, nil, differs)
	}
	for key, o := range delta.Set {
		x.replace(key, o, differs)
	}
}

func (x *objectsTxn) keys() iter.Seq[ObjectKey] {
	return func(yield func(ObjectKey) bool) {
		x.byKey.Walk(func(_ string, o *Object) bool { return !yield(o.Key) })
	}
}

func (x *objectsTxn) replace(key ObjectKey, now *Object, differs []func(ObjectKey)) {
	old, _ := x.byKey.Get(key.SortKey())
	if old == nil && now == nil || old != nil && now != nil && old.Equal(now) {
		return
	}
	x.set(key, old, now)
	x.changes.record(objectEntry, key.SortKey())
	if x.relabelled {
		x.changes.record(labelsEntry, "")
	}
	for _, tell := range differs {
		tell(key)
	}
}

// has reports whether there are objects of the kind.
func (x *objectsTxn) has(kind Kind) (has bool) {
	x.byKey.WalkPrefix(kind.prefix(), func(string, *Object) bool { has = true; return true })
	return has
}
