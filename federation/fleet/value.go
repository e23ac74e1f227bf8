package fleet

import (
	"encoding/binary"
	"iter"
	"strings"

	"isthmus.dev/isthmus/internal/btree"
)

// maxGone bounds the streams that a value remembers as gone; a reader that is
// behind the oldest forgotten one gets All.
const maxGone = 8192

// Value is the fleet at one moment. All methods are safe for concurrent use.
type Value struct {
	version    uint64
	proxies    btree.Map[*Proxy]
	changedAt  btree.Map[uint64] // key → version
	journal    btree.Map[bool]   // version + key → gone
	gone       btree.Map[bool]   // version + key of what is gone
	compacted  uint64            // what went up to this version may be forgotten
	superseded chan struct{}
	lookup     func() *proxyIndex
}

func emptyValue() *Value {
	v := &Value{superseded: make(chan struct{})}
	v.lookup = lazyProxyIndex(v)
	return v
}

// Version rises with every published change and starts again with the process.
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
		at := ""
		if after != (Key{}) {
			at = after.sortKey()
		}
		for k, p := range v.proxies.From(at) {
			if (at == "" || k != at) && !yield(p) {
				return
			}
		}
	}
}

// ProxiesBefore yields those that come before the key, the last one first; for the zero key, all.
func (v *Value) ProxiesBefore(before Key) iter.Seq[*Proxy] {
	return func(yield func(*Proxy) bool) {
		at := ""
		if before != (Key{}) {
			at = before.sortKey()
		}
		for _, p := range v.proxies.Before(at) {
			if !yield(p) {
				return
			}
		}
	}
}

// ByID returns the live streams of the node, the oldest first.
func (v *Value) ByID(nodeID string) []*Proxy {
	var found []*Proxy
	v.proxies.WalkPrefix(nodeID+nul, func(_ string, p *Proxy) bool {
		found = append(found, p)
		return false
	})
	return found
}

// Stream returns the live stream of the key.
func (v *Value) Stream(key Key) (p *Proxy, connected bool) { return v.proxies.Get(key.sortKey()) }

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
// the reader is too far behind, or never read, and must read everything again.
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
	if version == 0 || version < v.compacted {
		c.All = true
		return c
	}
	for k, gone := range v.journal.From(versionKey(version+1, "")) {
		if gone {
			node, stream, _ := strings.Cut(k[versionBytes:], nul)
			c.Gone = append(c.Gone, Key{node, stream})
			continue
		}
		p, _ := v.proxies.Get(k[versionBytes:])
		c.Changed = append(c.Changed, p)
	}
	return c
}

// with is the value that follows when the streams became what they are in
// changed; nil is gone.
func (v *Value) with(changed map[Key]*Proxy) *Value {
	next := &Value{version: v.version + 1, compacted: v.compacted, superseded: make(chan struct{})}
	proxies, changedAt := v.proxies.Txn(), v.changedAt.Txn()
	journal, gone := v.journal.Txn(), v.gone.Txn()
	for key, p := range changed {
		k := key.sortKey()
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
			gone.Set(versionKey(next.version, k), true)
		} else {
			proxies.Set(k, p)
			changedAt.Set(k, next.version)
		}
		journal.Set(versionKey(next.version, k), p == nil)
	}
	for _, at := range oldest(&gone, gone.Len()-maxGone) {
		next.compacted = binary.BigEndian.Uint64([]byte(at[:versionBytes]))
		gone.Delete(at)
		journal.Delete(at)
	}
	next.proxies, next.changedAt = proxies.Commit(), changedAt.Commit()
	next.journal, next.gone = journal.Commit(), gone.Commit()
	next.lookup = v.lookup
	if len(changed) > 0 {
		next.lookup = lazyProxyIndex(next)
	}
	return next
}

// oldest are the first n keys.
func oldest(of *btree.Txn[bool], n int) []string {
	var keys []string
	of.Walk(func(key string, _ bool) bool {
		if len(keys) < n {
			keys = append(keys, key)
		}
		return len(keys) >= n
	})
	return keys
}

// versionBytes is how long the version in a key is.
const versionBytes = 8

func versionKey(version uint64, key string) string {
	return string(binary.BigEndian.AppendUint64(make([]byte, 0, versionBytes+len(key)), version)) + key
}
