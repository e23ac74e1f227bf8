package etcd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unique"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
)

// head says what is in force. A commit moves it, and nothing else does.
type head struct {
	Revision int64
	Tx       string // of the record
	Hash     string // of the record
	Epoch    string // of the store
	Time     time.Time
}

// logEntry is where the record of a revision lies.
type logEntry struct {
	Revision int64
	Tx, Hash string
	Previous string // hash of the record before
	Once     string `json:",omitempty"` // key that its idempotency key has here
}

// checkpoint is where every object as of a revision lies.
type checkpoint struct {
	Revision int64
	Tx, Hash string
	Record   string // hash of the record of that revision
	Pasts    bool   `json:",omitempty"` // it has what was done to the objects
}

// txRoot is the first value of a transaction that is staged. What makes the
// transaction known puts it again: a root of that revision is referred to.
type txRoot struct {
	Known int64 // revision as of which it is known; 0: not yet
	Time  time.Time
}

// index is what a transaction says about its values: a record of changes, or every
// object of a checkpoint.
type index struct {
	indexHead
	Entries []entry
}

// indexHead is what an index says beside its entries.
type indexHead struct {
	Revision int64
	Previous string // hash of the record before; of a checkpoint: of its own record
	Note     config.Note
	// Of a checkpoint: whether it has what was done to the objects, and who did it in
	// which revision.
	Pasts bool                   `json:",omitempty"`
	Notes map[int64]*config.Note `json:",omitempty"`
}

// entry is one object of an index.
type entry struct {
	Key        federation.ObjectKey
	Action     config.Action
	APIVersion string `json:",omitempty"`
	Revision   int64  // since which the object is so
	Part       int    // number of the value part that has the manifest
	Offset     int
	Length     int
	Digest     string      `json:",omitempty"` // of the manifest; empty: there is none
	Past       *storedPast `json:",omitempty"` // in a checkpoint that has the histories
}

// encode returns the index's JSON in parts of at most partSize bytes, and the hash of
// all of it. JSON of a large index in one piece would be made with several times its size.
func (x *index) encode() ([][]byte, string, error) {
	head, err := json.Marshal(x.indexHead)
	if err != nil {
		return nil, "", err
	}
	var to pieces
	to.write(head[:len(head)-len("}")], []byte(`,"Entries":[`))
	for i := range x.Entries {
		if i > 0 {
			to.write([]byte(","))
		}
		e, err := json.Marshal(&x.Entries[i])
		if err != nil {
			return nil, "", err
		}
		to.write(e)
	}
	to.write([]byte("]}"))
	return to.all, digest(to.all...), nil
}

// pieces are bytes in parts of at most partSize.
type pieces struct{ all [][]byte }

func (p *pieces) write(texts ...[]byte) {
	for _, t := range texts {
		for len(t) > 0 {
			if n := len(p.all); n == 0 || len(p.all[n-1]) == partSize {
				p.all = append(p.all, nil)
			}
			last := &p.all[len(p.all)-1]
			n := min(partSize-len(*last), len(t))
			*last, t = append(*last, t[:n]...), t[n:]
		}
	}
}

// misdated sets aside the objects whose own revision is not one that they can have
// there.
func misdated(outcomes []outcome, possible func(revision int64) bool) {
	for i := range outcomes {
		if o := &outcomes[i]; o.object != nil && !possible(o.object.Revision) {
			o.bad = fmt.Errorf("%w: %d", errRevision, o.object.Revision)
			o.object = nil
		}
	}
}

var errRevision = errors.New("its own revision is not that of its record")

var errHash = errors.New("its hash is not the one that the history names")

// readIndex puts an index together again.
func readIndex(parts [][]byte, hash string) (*index, error) {
	var all []byte
	for _, p := range parts {
		data, err := payload(p)
		if err != nil {
			return nil, err
		}
		all = append(all, data...)
	}
	if digest(all) != hash {
		return nil, errHash
	}
	x := &index{}
	if err := json.Unmarshal(all, x); err != nil {
		return nil, fmt.Errorf("%w: %w", errForeign, err)
	}
	return x, nil
}

// shared is the same text in the memory that all objects share.
func shared(text string) string { return unique.Make(text).Value() }

func sharedKey(k federation.ObjectKey) federation.ObjectKey {
	k.Group, k.Kind, k.Namespace = shared(k.Group), shared(k.Kind), shared(k.Namespace)
	return k
}

// values returns the content of a part. One whose checksum is wrong is read all the
// same: each object of it has its own.
func values(part []byte) ([]byte, error) {
	data, err := payload(part)
	if errors.Is(err, errDamaged) && data != nil {
		err = nil
	}
	return data, err
}

// object reads the entry's object from the values of its part.
func (e *entry) object(data []byte) (*config.Object, error) {
	if e.Offset < 0 || e.Length < 0 || e.Offset > len(data) || e.Length > len(data)-e.Offset {
		return nil, fmt.Errorf("%w: it is cut short", errDamaged)
	}
	manifest := bytes.Clone(data[e.Offset : e.Offset+e.Length])
	if digest(manifest) != e.Digest {
		return nil, errDamaged
	}
	o := &config.Object{Key: sharedKey(e.Key), APIVersion: shared(e.APIVersion), Revision: e.Revision, Manifest: manifest}
	if err := o.CheckName(); err != nil {
		return nil, err
	}
	return o, nil
}
