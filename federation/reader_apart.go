package federation

// Apart begins another noted reading of the same snapshot.
func (r *Reader) Apart() *Reader { return r.snapshot.Read() }

// SelectObjects returns the objects of a kind that match, in the order of their
// keys. Those that match are noted, and that another may come.
func (r *Reader) SelectObjects(kind Kind, match func(*Object) bool) []*Object {
	r.deps.Sets[ObjectSet{kind, AllNamespaces}] = true
	var found []*Object
	for o := range r.snapshot.ObjectsOf(kind) {
		if match(o) {
			r.deps.Objects[o.Key] = true
			found = append(found, o)
		}
	}
	return found
}
