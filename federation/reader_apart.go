package federation

// Apart begins another noted reading of the same snapshot.
func (r *Reader) Apart() *Reader { return r.snapshot.ReadWithout(r.hidden).For(r.cluster) }

// ReadWithout begins a noted reading for which the objects do not exist.
func (s *Snapshot) ReadWithout(hidden map[ObjectKey]bool) *Reader {
	r := s.Read()
	r.hidden = hidden
	return r
}
