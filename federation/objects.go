package federation

import (
	"iter"
	"slices"
	"strings"

	"isthmus.dev/isthmus/internal/btree"
)

// ObjectName is one of the names under which readers look for objects of a kind.
type ObjectName struct {
	Kind
	Name string
}

// ObjectSet is the set of objects of a kind in a namespace.
type ObjectSet struct {
	Kind
	Namespace string
}

// AllNamespaces in an ObjectSet means all objects of the kind. No namespace
// has that name.
const AllNamespaces = "*"

func (k Kind) prefix() string { return k.Group + nul + k.Name + nul }

func (k ObjectKey) sortKey() string {
	return k.Group + nul + k.Kind + nul + k.Namespace + nul + k.Name
}

func objectKeyOf(key string) ObjectKey {
	parts := strings.SplitN(key, nul, 4)
	return ObjectKey{Group: parts[0], Kind: parts[1], Namespace: parts[2], Name: parts[3]}
}

func (n ObjectName) sortKey(key ObjectKey) string { return n.start() + key.sortKey() }

// start is what the keys of all objects of that kind and name begin with.
func (n ObjectName) start() string {
	return n.Group + nul + n.Kind.Name + nul + n.Name + nul
}

func (s ObjectSet) start() string { return s.prefix() + s.Namespace + nul }

// objectIndex holds objects and finds them.
type objectIndex struct {
	byKey       btree.Map[*Object]
	byName      btree.Map[*Object] // kind, name, key
	labels      btree.Map[int]     // keys of proxies' labels, and how many objects name each
	proxyLabels []string           // those keys, sorted
}

// Revision is the revision of the store of record that the snapshot includes.
func (s *Snapshot) Revision() int64 { return s.revision }

// Object returns the configuration object of that key.
func (s *Snapshot) Object(key ObjectKey) (*Object, bool) { return s.objects.byKey.Get(key.sortKey()) }

// CountObjects is the number of configuration objects.
func (s *Snapshot) CountObjects() int { return s.objects.byKey.Len() }

// Objects yields every configuration object in the order of their keys.
func (s *Snapshot) Objects() iter.Seq[*Object] { return walkObjects(s.objects.byKey, "") }

// ObjectsOf yields the objects of a kind in the order of their keys.
func (s *Snapshot) ObjectsOf(kind Kind) iter.Seq[*Object] {
	return walkObjects(s.objects.byKey, kind.prefix())
}

// ObjectsIn yields the objects of a kind in a namespace in the order of names.
func (s *Snapshot) ObjectsIn(kind Kind, namespace string) iter.Seq[*Object] {
	return walkObjects(s.objects.byKey, ObjectSet{kind, namespace}.start())
}

// ObjectsNamed yields the objects of a kind that have the name among their
// Names, in the order of their keys.
func (s *Snapshot) ObjectsNamed(kind Kind, name string) iter.Seq[*Object] {
	return walkObjects(s.objects.byName, ObjectName{kind, name}.start())
}

// ProxyLabels returns the keys of proxies' labels that decide about objects,
// sorted. As long as the set is the same, so is the slice.
func (s *Snapshot) ProxyLabels() []string { return s.objects.proxyLabels }

func walkObjects(tree btree.Map[*Object], prefix string) iter.Seq[*Object] {
	return func(yield func(*Object) bool) {
		tree.WalkPrefix(prefix, func(_ string, o *Object) bool { return !yield(o) })
	}
}

// objectsTxn is an objectIndex in the making.
type objectsTxn struct {
	byKey, byName btree.Txn[*Object]
	labels        btree.Txn[int]
	before        objectIndex
	relabelled    bool // the set of labels may be another one
	changes       *changes
}

func (x objectIndex) txn() objectsTxn {
	return objectsTxn{byKey: x.byKey.Txn(), byName: x.byName.Txn(), labels: x.labels.Txn(), before: x}
}

func (x *objectsTxn) commit() objectIndex {
	out := objectIndex{byKey: x.byKey.Commit(), byName: x.byName.Commit(), labels: x.labels.Commit(), proxyLabels: x.before.proxyLabels}
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
			x.byName.Delete(ObjectName{key.Of(), name}.sortKey(key))
		}
		x.countLabels(old.ProxyLabels, -1)
	}
	if now == nil {
		x.byKey.Delete(key.sortKey())
		return
	}
	x.byKey.Set(key.sortKey(), now)
	for _, name := range now.Names {
		x.byName.Set(ObjectName{key.Of(), name}.sortKey(key), now)
	}
	x.countLabels(now.ProxyLabels, 1)
}

func (x *objectsTxn) countLabels(keys []string, change int) {
	for _, key := range keys {
		n, _ := x.labels.Get(key)
		switch n += change; n {
		case 0:
			x.labels.Delete(key)
			x.relabelled = true
		case 1:
			x.relabelled = true
			fallthrough
		default:
			x.labels.Set(key, n)
		}
	}
}

// apply takes up objects of the configuration, and tells of each that differs.
func (x *objectsTxn) apply(delta Delta[ObjectKey, *Object], differs func(ObjectKey)) {
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

func (x *objectsTxn) replace(key ObjectKey, now *Object, differs func(ObjectKey)) {
	old, _ := x.byKey.Get(key.sortKey())
	if old == nil && now == nil || old != nil && now != nil && old.Equal(now) {
		return
	}
	x.set(key, old, now)
	x.changes.record(objectEntry, key.sortKey())
	if x.relabelled {
		x.changes.record(labelsEntry, "")
	}
	differs(key)
}
