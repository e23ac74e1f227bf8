package federation

import (
	"iter"
	"slices"
	"strings"

	iradix "github.com/hashicorp/go-immutable-radix/v2"
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

// AllNamespaces in an ObjectSet stands for all objects of the kind. No namespace
// has that name.
const AllNamespaces = "*"

func (k Kind) prefix() string { return k.Group + nul + k.Name + nul }

func (k ObjectKey) bytes() []byte { return []byte(k.Of().prefix() + k.Namespace + nul + k.Name) }

func objectKeyOf(key string) ObjectKey {
	parts := strings.SplitN(key, nul, 4)
	return ObjectKey{Group: parts[0], Kind: parts[1], Namespace: parts[2], Name: parts[3]}
}

func (n ObjectName) bytes(key ObjectKey) []byte { return append(n.start(), key.bytes()...) }

// start is what the keys of all objects of that kind and name begin with.
func (n ObjectName) start() []byte {
	b := make([]byte, 0, len(n.Group)+len(n.Kind.Name)+len(n.Name)+3*len(nul))
	for _, part := range []string{n.Group, n.Kind.Name, n.Name} {
		b = append(append(b, part...), nul...)
	}
	return b
}

func (s ObjectSet) bytes() []byte { return []byte(s.prefix() + s.Namespace + nul) }

// objectIndex holds objects and finds them.
type objectIndex struct {
	byKey       *iradix.Tree[*Object]
	byName      *iradix.Tree[*Object] // kind, name, key
	labels      *iradix.Tree[int]     // keys of proxies' labels, and how many objects name each
	proxyLabels []string              // those keys, sorted
}

func emptyObjects() objectIndex {
	return objectIndex{byKey: iradix.New[*Object](), byName: iradix.New[*Object](), labels: iradix.New[int]()}
}

// Revision is the revision of the store of record that the snapshot includes.
func (s *Snapshot) Revision() int64 { return s.revision }

// Object returns the configuration object of that key.
func (s *Snapshot) Object(key ObjectKey) (*Object, bool) { return s.objects.byKey.Get(key.bytes()) }

// CountObjects is the number of configuration objects.
func (s *Snapshot) CountObjects() int { return s.objects.byKey.Len() }

// Objects yields every configuration object in the order of their keys.
func (s *Snapshot) Objects() iter.Seq[*Object] { return walkObjects(s.objects.byKey, nil) }

// ObjectsOf yields the objects of a kind in the order of their keys.
func (s *Snapshot) ObjectsOf(kind Kind) iter.Seq[*Object] {
	return walkObjects(s.objects.byKey, []byte(kind.prefix()))
}

// ObjectsIn yields the objects of a kind in a namespace in the order of names.
func (s *Snapshot) ObjectsIn(kind Kind, namespace string) iter.Seq[*Object] {
	return walkObjects(s.objects.byKey, ObjectSet{kind, namespace}.bytes())
}

// ObjectsNamed yields the objects of a kind that have the name among their
// Names, in the order of their keys.
func (s *Snapshot) ObjectsNamed(kind Kind, name string) iter.Seq[*Object] {
	return walkObjects(s.objects.byName, ObjectName{kind, name}.start())
}

// ProxyLabels returns the keys of proxies' labels that decide about objects,
// sorted. As long as the set is the same, so is the slice.
func (s *Snapshot) ProxyLabels() []string { return s.objects.proxyLabels }

func walkObjects(tree *iradix.Tree[*Object], prefix []byte) iter.Seq[*Object] {
	return func(yield func(*Object) bool) {
		tree.Root().WalkPrefix(prefix, func(_ []byte, o *Object) bool { return !yield(o) })
	}
}

// objectsTxn is an objectIndex in the making.
type objectsTxn struct {
	byKey, byName *iradix.Txn[*Object]
	labels        *iradix.Txn[int]
	before        objectIndex
	relabelled    bool // the set of labels may be another one
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
	out.labels.Root().Walk(func(k []byte, _ int) bool { keys = append(keys, string(k)); return false })
	if !slices.Equal(keys, out.proxyLabels) {
		out.proxyLabels = keys
	}
	return out
}

// set puts the object in place of old; either may be nil.
func (x *objectsTxn) set(key ObjectKey, old, now *Object) {
	if old != nil {
		for _, name := range old.Names {
			x.byName.Delete(ObjectName{key.Of(), name}.bytes(key))
		}
		x.countLabels(old.ProxyLabels, -1)
	}
	if now == nil {
		x.byKey.Delete(key.bytes())
		return
	}
	x.byKey.Insert(key.bytes(), now)
	for _, name := range now.Names {
		x.byName.Insert(ObjectName{key.Of(), name}.bytes(key), now)
	}
	x.countLabels(now.ProxyLabels, 1)
}

func (x *objectsTxn) countLabels(keys []string, change int) {
	for _, key := range keys {
		n, _ := x.labels.Get([]byte(key))
		switch n += change; n {
		case 0:
			x.labels.Delete([]byte(key))
			x.relabelled = true
		case 1:
			x.relabelled = true
			fallthrough
		default:
			x.labels.Insert([]byte(key), n)
		}
	}
}

func (d *draft) applyObjects(delta Delta[ObjectKey, *Object]) {
	if delta.Full {
		var gone []ObjectKey
		d.objects.byKey.Root().Walk(func(_ []byte, o *Object) bool {
			if _, stays := delta.Set[o.Key]; !stays {
				gone = append(gone, o.Key)
			}
			return false
		})
		delta.Gone = append(gone, delta.Gone...)
	}
	for _, key := range delta.Gone {
		d.setObject(key, nil)
	}
	for key, o := range delta.Set {
		d.setObject(key, o)
	}
}

func (d *draft) setObject(key ObjectKey, now *Object) {
	old, _ := d.objects.byKey.Get(key.bytes())
	if old == nil && now == nil || old != nil && now != nil && old.Equal(now) {
		return
	}
	d.objects.set(key, old, now)
	d.record(objectEntry, key.bytes())
	if d.objects.relabelled {
		d.record(labelsEntry, nil)
	}
	d.noteNetworkObject(key)
}
