package config

// Preparer computes what a later state has of objects, while they are at hand: nothing
// has to keep what was decoded of all objects of a large change, nor to decode it again.
type Preparer struct {
	of     *State
	labels *labelSets
}

// Preparer prepares objects for states that follow from this one. It may be used by many
// goroutines at once.
func (s *State) Preparer() *Preparer { return &Preparer{s, newLabelSets()} }

// Prepare uses up what was read of an object before it was written. It does nothing for an
// object of which nothing was read.
func (p *Preparer) Prepare(o *Object) {
	if o.read != nil {
		o.read.once.Store(&parts{held: p.of.holdContained(o, p.labels)})
	}
}

// takeHeld returns what was prepared, once.
func (r *read) takeHeld() *held {
	if r == nil {
		return nil
	}
	p := r.once.Load()
	if p == nil || p.held == nil || !r.once.CompareAndSwap(p, nil) {
		return nil
	}
	return p.held
}
