package fleet

import (
	"bytes"
	"encoding/binary"
	"iter"

	iradix "github.com/hashicorp/go-immutable-radix/v2"
)

// maxGone bounds the streams that a value remembers as gone; a reader that is
// behind the oldest forgotten one is told All.
const maxGone = 8192

// Value is the fleet at one moment. All methods are safe for concurrent use.
type Value struct {
	version    uint64
	proxies    *iradix.Tree[*Proxy]
	changedAt  *iradix.Tree[uint64] // key → version
	journal    *iradix.Tree[bool]   // version + key → gone
	gone       *iradix.Tree[bool]   // version + key of what is gone
	horizon    uint64               // what went up to this version may be forgotten
	superseded chan struct{}
	lookup     func() *roster
}

func emptyValue() *Value {
	v := &Value{
		proxies: iradix.New[*Proxy](), changedAt: iradix.New[uint64](), journal: iradix.New[bool](),
		gone: iradix.New[bool](), superseded: make(chan struct{}),
	}
	v.lookup = lazyRoster(v)
	return v
}

// Version rises with every published change and starts anew with the process.
func (v *Value) Version() uint64 { return v.version }

// Superseded is closed when something was reported that this value lacks.
func (v *Value) Superseded() <-chan struct{} { return v.superseded }

// Count is the number of live streams.
func (v *Value) Count() int { return v.proxies.Len() }

// Proxies yields every live stream, by node ID and then in order of connecting.
func (v *Value) Proxies() iter.Seq[*Proxy] { return v.ProxiesAfter(Key{}) }

// ProxiesAfter yields those that come after the key.
func (v *Value) ProxiesAfter(after Key) iter.Seq[*Proxy] {
	return func(yield func(*Proxy) bool) {
		at := after.bytes()
		it := v.proxies.Root().Iterator()
		if after != (Key{}) {
			it.SeekLowerBound(at)
		}
		for k, p, ok := it.Next(); ok; k, p, ok = it.Next() {
			if (after == (Key{}) || !bytes.Equal(k, at)) && !yield(p) {
				return
			}
		}
	}
}

// ByID returns the live streams of the node, the oldest first.
func (v *Value) ByID(nodeID string) []*Proxy {
	var found []*Proxy
	v.proxies.Root().WalkPrefix([]byte(nodeID+nul), func(_ []byte, p *Proxy) bool {
		found = append(found, p)
		return false
	})
	return found
}

// ByProxy returns the newest live stream of the proxy; nil where there is none.
func (v *Value) ByProxy(id ProxyID) (newest *Proxy) {
	for _, p := range v.ByID(id.NodeID) {
		if p.Cluster == id.Cluster {
			newest = p
		}
	}
	return newest
}

// ChangeSet names what differs between two versions, each stream once. With All
// the reader is too far behind, or never read, and must take everything anew.
type ChangeSet struct {
	From, To uint64
	All      bool
	Changed  []*Proxy // as they are now
	Gone     []Key
}

// ChangesSince returns what changed after the version, at the cost of the
// changes. Version 0 is that of a reader that never read.
func (v *Value) ChangesSince(version uint64) ChangeSet {
	c := ChangeSet{From: version, To: v.version}
	if version >= v.version {
		return c
	}
	if version == 0 || version < v.horizon {
		c.All = true
		return c
	}
	it := v.journal.Root().Iterator()
	it.SeekLowerBound(versionKey(version+1, nil))
	for k, gone, ok := it.Next(); ok; k, gone, ok = it.Next() {
		if gone {
			node, stream, _ := bytes.Cut(k[8:], []byte(nul))
			c.Gone = append(c.Gone, Key{string(node), string(stream)})
			continue
		}
		p, _ := v.proxies.Get(k[8:])
		c.Changed = append(c.Changed, p)
	}
	return c
}

// with is the value that follows when the streams became what they are in
// changed; nil is gone.
func (v *Value) with(changed map[Key]*Proxy) *Value {
	next := &Value{version: v.version + 1, horizon: v.horizon, superseded: make(chan struct{})}
	proxies, changedAt, journal, gone := v.proxies.Txn(), v.changedAt.Txn(), v.journal.Txn(), v.gone.Txn()
	graves := v.gone.Len()
	for key, p := range changed {
		k := key.bytes()
		old, had := changedAt.Get(k)
		if had {
			journal.Delete(versionKey(old, k))
		}
		if p == nil {
			if !had {
				continue // came and went unseen
			}
			proxies.Delete(k)
			changedAt.Delete(k)
			gone.Insert(versionKey(next.version, k), true)
			graves++
		} else {
			proxies.Insert(k, p)
			changedAt.Insert(k, next.version)
		}
		journal.Insert(versionKey(next.version, k), p == nil)
	}
	for ; graves > maxGone; graves-- {
		at, _, _ := gone.Root().Minimum()
		next.horizon = binary.BigEndian.Uint64(at)
		gone.Delete(at)
		journal.Delete(at)
	}
	next.proxies, next.changedAt, next.journal, next.gone = proxies.Commit(), changedAt.Commit(), journal.Commit(), gone.Commit()
	next.lookup = lazyRoster(next)
	return next
}

func versionKey(version uint64, key []byte) []byte {
	return append(binary.BigEndian.AppendUint64(make([]byte, 0, 8+len(key)), version), key...)
}
