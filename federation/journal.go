package federation

import (
	"encoding/binary"

	iradix "github.com/hashicorp/go-immutable-radix/v2"
)

// maxGone bounds the tombstones that a snapshot carries. A reader that is
// behind the oldest dropped one is told All.
const maxGone = 8192

// entryKind is the first byte of a journal key.
type entryKind byte

const (
	serviceEntry entryKind = 's'
	clusterEntry entryKind = 'c'
	addressEntry entryKind = 'a'
	settingEntry entryKind = 'g'
)

// journal knows for each thing of a snapshot the version of its last change,
// and for each version the things that last changed then. It is a persistent
// value: a change costs the depth of two trees.
type journal struct {
	byKey     *iradix.Tree[uint64] // kind + key → version
	byVersion *iradix.Tree[bool]   // version + kind + key → gone
	gone      *iradix.Tree[bool]   // version + kind + key of what is gone, oldest first
	tombs     int                  // size of gone
	horizon   uint64               // deletions up to this version may be forgotten
}

func newJournal() journal {
	return journal{byKey: iradix.New[uint64](), byVersion: iradix.New[bool](), gone: iradix.New[bool]()}
}

// since calls visit for every key whose last change is after the version, in
// order of their versions; ok is false where deletions may be missing.
func (j journal) since(version uint64, visit func(kind entryKind, key []byte, gone bool)) (ok bool) {
	if version < j.horizon {
		return false
	}
	it := j.byVersion.Root().Iterator()
	it.SeekLowerBound(binary.BigEndian.AppendUint64(nil, version+1))
	for k, gone, more := it.Next(); more; k, gone, more = it.Next() {
		visit(entryKind(k[8]), k[9:], gone)
	}
	return true
}

// journalTxn collects the changes of one version.
type journalTxn struct {
	base      journal
	byKey     *iradix.Txn[uint64]
	byVersion *iradix.Txn[bool]
	gone      *iradix.Txn[bool]
	tombs     int
	version   uint64
}

func (j journal) begin(version uint64) *journalTxn {
	return &journalTxn{base: j, byKey: j.byKey.Txn(), byVersion: j.byVersion.Txn(), gone: j.gone.Txn(), tombs: j.tombs, version: version}
}

func (t *journalTxn) record(kind entryKind, key []byte, gone bool) {
	k := append([]byte{byte(kind)}, key...)
	if old, ok := t.byKey.Get(k); ok {
		at := versionKey(old, k)
		if wasGone, _ := t.byVersion.Delete(at); wasGone {
			t.bury(at, false)
		}
	}
	at := versionKey(t.version, k)
	t.byKey.Insert(k, t.version)
	t.byVersion.Insert(at, gone)
	if gone {
		t.bury(at, true)
	}
}

func (t *journalTxn) bury(at []byte, gone bool) {
	if gone {
		t.gone.Insert(at, true)
		t.tombs++
	} else if _, was := t.gone.Delete(at); was {
		t.tombs--
	}
}

func (t *journalTxn) commit() journal {
	j := journal{horizon: t.base.horizon}
	for t.tombs > maxGone {
		at, _, _ := t.gone.Root().Minimum()
		j.horizon = binary.BigEndian.Uint64(at)
		t.bury(at, false)
		t.byVersion.Delete(at)
		t.byKey.Delete(at[8:])
	}
	j.byKey, j.byVersion, j.gone, j.tombs = t.byKey.Commit(), t.byVersion.Commit(), t.gone.Commit(), t.tombs
	return j
}

func versionKey(version uint64, key []byte) []byte {
	return append(binary.BigEndian.AppendUint64(make([]byte, 0, 8+len(key)), version), key...)
}
