package federation

// Apart begins another noted reading of the same snapshot.
func (r *Reader) Apart() *Reader { return r.snapshot.ReadWithout(r.hidden) }

// ReadWithout begins a noted reading for which the objects do not exist.
func (s *Snapshot) ReadWithout(hidden map[ObjectKey]bool) *Reader {
	r := s.Read()
	r.hidden = hidden
	return r
}

// SelectObjects returns the objects of a kind that match, in the order of their
// keys. Those that match are noted, and that another may come.
func (r *Reader) SelectObjects(kind Kind, match func(*Object) bool) []*Object {
	note(&r.deps.Sets, ObjectSet{kind, AllNamespaces})
	var found []*Object
	for o := range r.snapshot.ObjectsOf(kind) {
		if !r.hidden[o.Key] && match(o) {
			note(&r.deps.Objects, o.Key)
			found = append(found, o)
		}
	}
	return found
}
