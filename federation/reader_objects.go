package federation

import (
	"iter"

	"isthmus.dev/isthmus/internal/btree"
	"isthmus.dev/isthmus/internal/smallmap"
)

// NotedObjects are Objects for a Reader: those that are read are noted, and that others
// may come. Objects that are hidden from the Reader are not among them.
type NotedObjects struct{ reader *Reader }

// Objects are the configuration objects.
func (r *Reader) Objects() NotedObjects { return NotedObjects{r} }

// Named is Objects.Named, noted.
func (x NotedObjects) Named(kind Kind, name string) iter.Seq[*Object] {
	return func(yield func(*Object) bool) { x.named(ObjectName{Kind: kind, Name: name}, yield) }
}

// For yields the objects of a kind that name the hostname, by name or by
// wildcard, the most specific first.
func (x NotedObjects) For(kind Kind, host Hostname) iter.Seq[*Object] {
	return func(yield func(*Object) bool) {
		x.noteName(&x.reader.deps.Hosts, ObjectName{Kind: kind, Name: string(host)})
		for _, name := range Wildcards(host) {
			if stopped := x.walk(&x.reader.snapshot.objects.byName, ObjectName{Kind: kind, Name: name}.start(), yield); stopped {
				return
			}
		}
	}
}

// In is Objects.In, noted.
func (x NotedObjects) In(kind Kind, namespace string) iter.Seq[*Object] {
	return func(yield func(*Object) bool) { x.in(ObjectSet{Kind: kind, Namespace: namespace}, yield) }
}

// Of is Objects.Of, noted. A computation that reads a whole kind is repeated with
// every object that comes.
func (x NotedObjects) Of(kind Kind) iter.Seq[*Object] {
	return func(yield func(*Object) bool) {
		x.noteSet(ObjectSet{Kind: kind, Namespace: AllNamespaces})
		x.walk(&x.reader.snapshot.objects.byKey, kind.prefix(), yield)
	}
}

// Select returns the objects of a kind that match, in the order of their keys. Those
// that match are noted, and that another may come.
func (x NotedObjects) Select(kind Kind, match func(*Object) bool) []*Object {
	r := x.reader
	x.noteSet(ObjectSet{Kind: kind, Namespace: AllNamespaces})
	var found []*Object
	for o := range r.snapshot.objects.Of(kind) {
		if r.sees(o) && match(o) {
			smallmap.Add(&r.deps.Objects, o.Key)
			found = append(found, o)
		}
	}
	return found
}

// ProxyLabels is Objects.ProxyLabels, noted.
func (x NotedObjects) ProxyLabels() []string {
	x.reader.deps.Labels = true
	return x.reader.snapshot.objects.ProxyLabels()
}

// HasOf is Objects.HasOf, noted.
func (x NotedObjects) HasOf(id ClusterID) bool {
	smallmap.Add(&x.reader.deps.Sets, ObjectSet{Cluster: id})
	return x.reader.snapshot.objects.HasOf(id)
}

func (x NotedObjects) noteName(in *smallmap.Set[ObjectName], n ObjectName) {
	smallmap.Add(in, n)
	n.Cluster = x.reader.cluster
	if n.Cluster != "" {
		smallmap.Add(in, n)
	}
}

func (x NotedObjects) noteSet(set ObjectSet) {
	smallmap.Add(&x.reader.deps.Sets, set)
	set.Cluster = x.reader.cluster
	if set.Cluster != "" {
		smallmap.Add(&x.reader.deps.Sets, set)
	}
}

func (x NotedObjects) named(n ObjectName, yield func(*Object) bool) {
	x.noteName(&x.reader.deps.Names, n)
	x.walk(&x.reader.snapshot.objects.byName, n.start(), yield)
}

func (x NotedObjects) in(set ObjectSet, yield func(*Object) bool) {
	x.noteSet(set)
	x.walk(&x.reader.snapshot.objects.byKey, set.start(), yield)
}

// walk yields the objects whose keys in the tree begin with the prefix. It is a function that
// takes yield, not an iterator: the loops of callers then stay on their stacks.
func (x NotedObjects) walk(tree *btree.Map[*Object], prefix string, yield func(*Object) bool) (stopped bool) {
	r := x.reader
	tree.WalkPrefix(prefix, func(_ string, o *Object) bool {
		if !r.sees(o) {
			return false
		}
		smallmap.Add(&r.deps.Objects, o.Key)
		stopped = !yield(o)
		return stopped
	})
	return stopped
}
