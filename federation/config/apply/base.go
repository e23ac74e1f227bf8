package apply

import (
	"iter"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/kind"
)

// base is the view that a change is computed from.
type base struct{ *config.View }

// Revision is that of the store of record. Unlike the view's own it goes back
// when an older backup of the store is put in place.
func (b base) Revision() int64 { return b.Sources[0].Revision }

// unusable are the codes of a store for an object whose stored value it does not
// use: writing or deleting the object is the cure, whatever is shown of it.
var unusable = map[string]bool{
	"UNDECODABLE": true, "CHECKSUM": true, "NEWER_FORMAT": true, "OTHER_OBJECT": true,
	"OTHER_REVISION": true, codeQuarantined: true,
}

func (b base) isUnusable(key federation.ObjectKey) bool {
	name := key.String()
	for _, p := range b.Sources[0].Trouble {
		if p.Object == name && unusable[p.Code] {
			return true
		}
	}
	return false
}

// stored returns an object of the store of record. What has a lease is not in
// its history, and automatic VIPs cannot be changed.
func (b base) stored(key federation.ObjectKey) (*config.Object, bool) {
	o, ok := b.State.Object(key)
	if !ok || !b.isStored(o) {
		return nil, false
	}
	return o, true
}

func (b base) isStored(o *config.Object) bool {
	source, _ := b.SourceOf(o.Key)
	return source == b.Sources[0].Name && o.Expires.IsZero() && !kind.Internal(o.Key.Of())
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

// hides are findings of changes after which objects of other sources do not count.
func (b base) hides(made []Change) (found []Finding) {
	for _, c := range made {
		if c.Object == nil {
			continue
		}
		if p := b.HiddenBehind(c.Key); p != nil {
			found = append(found, Finding{Code: p.Code, Severity: Warning, Message: p.Message, Key: c.Key})
		}
	}
	return found
}

// readOnly says why an object that is there cannot be changed by a request; "" if
// there is none.
func (b base) readOnly(key federation.ObjectKey) string {
	o, found := b.State.Object(key)
	source, _ := b.SourceOf(key)
	switch {
	case found && key.Of() == federation.AllocationKind:
		return "keeps an automatic address: it goes with the last ServiceEntry of its host"
	case found && kind.Internal(key.Of()):
		return "is the hub's own"
	case found && !o.Expires.IsZero():
		return "is registered, not applied: it goes when it is not renewed any more"
	case source != "":
		return "comes from " + source + ", which is not written to: remove it there"
	}
	return ""
}
