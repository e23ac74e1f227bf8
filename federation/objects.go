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

// Objects are the configuration objects of a snapshot, and their indexes.
type Objects struct {
	byKey       btree.Map[*Object]
	byName      btree.Map[*Object] // kind, name, key
	labels      btree.Map[int]     // keys of proxies' labels, and how many objects name each
	proxyLabels []string           // those keys, sorted
}

// Revision is the revision of the store of record that the snapshot includes.
func (s *Snapshot) Revision() int64 { return s.revision }

// Object returns the configuration object of that key.
func (s *Snapshot) Object(key ObjectKey) (*Object, bool) { return s.objects.byKey.Get(key.sortKey()) }

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
	return walkObjects(x.byKey, ObjectSet{kind, namespace}.start())
}

// Named yields the objects of a kind that have the name among their Names, in the
// order of their keys.
func (x *Objects) Named(kind Kind, name string) iter.Seq[*Object] {
	return walkObjects(x.byName, ObjectName{kind, name}.start())
}

// ProxyLabels returns the keys of proxies' labels that decide about objects,
// sorted. As long as the set is the same, so is the slice.
func (x *Objects) ProxyLabels() []string { return x.proxyLabels }

func walkObjects(tree btree.Map[*Object], prefix string) iter.Seq[*Object] {
	return func(yield func(*Object) bool) {
		tree.WalkPrefix(prefix, func(_ string, o *Object) bool { return !yield(o) })
	}
}

// objectsTxn are Objects in the making.
type objectsTxn struct {
	byKey, byName btree.Txn[*Object]
	labels        btree.Txn[int]
	before        *Objects
	relabelled    bool // the set of labels may be another one
	changes       *changes
}

func (x *Objects) txn() objectsTxn {
	return objectsTxn{byKey: x.byKey.Txn(), byName: x.byName.Txn(), labels: x.labels.Txn(), before: x}
}

func (x *objectsTxn) commit() Objects {
	out := Objects{byKey: x.byKey.Commit(), byName: x.byName.Commit(), labels: x.labels.Commit(), proxyLabels: x.before.proxyLabels}
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
