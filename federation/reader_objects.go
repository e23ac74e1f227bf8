package federation

import "iter"

// NotedObjects are Objects for a Reader: those that are read are noted, and that others
// may come. Objects that are hidden from the Reader are not among them.
type NotedObjects struct{ reader *Reader }

// Objects are the configuration objects.
func (r *Reader) Objects() NotedObjects { return NotedObjects{r} }

// Named is Objects.Named, noted.
func (x NotedObjects) Named(kind Kind, name string) iter.Seq[*Object] {
	note(&x.reader.deps.Names, ObjectName{kind, name})
	return x.noted(x.reader.snapshot.objects.Named(kind, name))
}

// For yields the objects of a kind that speak of the hostname, by name or by
// wildcard, the most specific first.
func (x NotedObjects) For(kind Kind, host Hostname) iter.Seq[*Object] {
	note(&x.reader.deps.Hosts, ObjectName{kind, string(host)})
	return x.noted(func(yield func(*Object) bool) {
		for _, name := range Wildcards(host) {
			for o := range x.reader.snapshot.objects.Named(kind, name) {
				if !yield(o) {
					return
				}
			}
		}
	})
}

// In is Objects.In, noted.
func (x NotedObjects) In(kind Kind, namespace string) iter.Seq[*Object] {
	note(&x.reader.deps.Sets, ObjectSet{kind, namespace})
	return x.noted(x.reader.snapshot.objects.In(kind, namespace))
}

// Of is Objects.Of, noted. A computation that reads a whole kind is repeated with
// every object that comes.
func (x NotedObjects) Of(kind Kind) iter.Seq[*Object] {
	note(&x.reader.deps.Sets, ObjectSet{kind, AllNamespaces})
	return x.noted(x.reader.snapshot.objects.Of(kind))
}

// Select returns the objects of a kind that match, in the order of their keys. Those
// that match are noted, and that another may come.
func (x NotedObjects) Select(kind Kind, match func(*Object) bool) []*Object {
	r := x.reader
	note(&r.deps.Sets, ObjectSet{kind, AllNamespaces})
	var found []*Object
	for o := range r.snapshot.objects.Of(kind) {
		if !r.hidden[o.Key] && match(o) {
			note(&r.deps.Objects, o.Key)
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

func (x NotedObjects) noted(objects iter.Seq[*Object]) iter.Seq[*Object] {
	r := x.reader
	return func(yield func(*Object) bool) {
		for o := range objects {
			if r.hidden[o.Key] {
				continue
			}
			note(&r.deps.Objects, o.Key)
			if !yield(o) {
				return
			}
		}
	}
}
