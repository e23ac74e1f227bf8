package apply

import (
	"iter"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
)

// base is the view that a change is computed from.
type base struct{ *config.View }

// stored returns an object of the store of record. What has a lease is not in
// its history, and automatic VIPs are nobody's to change.
func (b base) stored(key federation.ObjectKey) (*config.Object, bool) {
	o, ok := b.State.Object(key)
	if !ok || !b.isStored(o) {
		return nil, false
	}
	return o, true
}

func (b base) isStored(o *config.Object) bool {
	source, _ := b.SourceOf(o.Key)
	return source == b.Sources[0].Name && o.Expires.IsZero() && o.Key.Of() != federation.AllocationKind
}

// storedObjects yields all of them in the order of their keys.
func (b base) storedObjects() iter.Seq[*config.Object] {
	return func(yield func(*config.Object) bool) {
		for o := range b.State.Objects() {
			if b.isStored(o) && !yield(o) {
				return
			}
		}
	}
}
