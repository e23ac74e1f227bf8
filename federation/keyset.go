package federation

import (
	"iter"
	"strings"

	"isthmus.dev/isthmus/internal/btree"
	"isthmus.dev/isthmus/internal/smallmap"
)

// KeySource is where the keys are by which tokens are verified: a JSON Web Key Set at a
// URI, or the set that an OpenID configuration at the URI names.
type KeySource struct {
	URI    string
	OpenID bool
}

// KeySet is what the hub has of a KeySource.
type KeySet struct {
	Keys    string // a JSON Web Key Set with keys that proxies can use; empty: none were fetched yet
	Problem string // why the last try failed; empty: it did not
}

const openIDPrefix = "openid "

func (k KeySource) sortKey() string {
	if k.OpenID {
		return openIDPrefix + k.URI
	}
	return k.URI
}

func keySourceOf(key string) KeySource {
	uri, openID := strings.CutPrefix(key, openIDPrefix)
	return KeySource{URI: uri, OpenID: openID}
}

// KeySetIn returns what was fetched from the source; false: no try has ended yet.
func KeySetIn(s *Snapshot, from KeySource) (KeySet, bool) { return s.keySets.Get(from.sortKey()) }

// ReadKeySet is KeySetIn, noted.
func ReadKeySet(r *Reader, from KeySource) (KeySet, bool) {
	smallmap.Add(&r.deps.KeySets, from)
	return KeySetIn(r.snapshot, from)
}

// KeySetsIn yields all sets that were fetched, and what went wrong, by source.
func KeySetsIn(s *Snapshot) iter.Seq2[KeySource, KeySet] {
	return func(yield func(KeySource, KeySet) bool) {
		s.keySets.Walk(func(k string, set KeySet) bool { return !yield(keySourceOf(k), set) })
	}
}

// keySetsTxn are sets of keys in the making.
type keySetsTxn struct {
	btree.Txn[KeySet]
	changes *changes
}

func (x *keySetsTxn) apply(delta Delta[KeySource, KeySet]) {
	for _, from := range delta.removed(x.sources()) {
		_, had := x.Delete(from.sortKey())
		if had {
			x.changes.record(keySetEntry, from.sortKey())
		}
	}
	for from, now := range delta.Set {
		was, had := x.Get(from.sortKey())
		if had && was == now {
			continue
		}
		x.Set(from.sortKey(), now)
		x.changes.record(keySetEntry, from.sortKey())
	}
}

func (x *keySetsTxn) sources() iter.Seq[KeySource] {
	return func(yield func(KeySource) bool) {
		x.Walk(func(k string, _ KeySet) bool { return !yield(keySourceOf(k)) })
	}
}
