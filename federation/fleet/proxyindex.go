package fleet

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math/bits"
	"slices"
	"sync"

	"isthmus.dev/isthmus/federation"
)

// proxyIndex finds the proxies that get what a group builds. It is made once of a
// value, when a reader first asks; after that an object costs what it affects that
// is on its way, however many proxies have it or do not get it (R42).
type proxyIndex struct {
	proxies  []indexedProxy
	wildcard map[Group]ordinals // proxies that get all that the group builds
	members  map[Group][]member // that get what they name
	open     map[Group][]member // that lack something
	refusing []member           // that refuse secrets
	refused  bool               // a proxy refuses something, whatever it is
	// sure are the proxies with a stream that is sure to know what objects as of that
	// version mean for it, and nothing of later ones.
	sure map[uint64]ordinals
}

// ProxyID names a proxy. Clusters may have proxies with the same node ID.
type ProxyID struct {
	Cluster federation.ClusterID
	NodeID  string
}

// Compare orders proxies by node ID, then by cluster.
func (p ProxyID) Compare(o ProxyID) int {
	return cmp.Or(cmp.Compare(p.NodeID, o.NodeID), cmp.Compare(p.Cluster, o.Cluster))
}

type indexedProxy struct {
	key     ProxyID
	streams []*Proxy
}

// member is a type on a stream of a proxy.
type member struct {
	proxy    int // its place among the proxies
	delivery *Delivery
}

// index returns the value's.
func (v *Value) index() *proxyIndex { return v.lookup() }

func lazyProxyIndex(v *Value) func() *proxyIndex {
	return sync.OnceValue(func() *proxyIndex { return newProxyIndex(v) })
}

func newProxyIndex(v *Value) *proxyIndex {
	r := &proxyIndex{wildcard: map[Group]ordinals{}, members: map[Group][]member{}, open: map[Group][]member{}, sure: map[uint64]ordinals{}}
	streams := map[ProxyID][]*Proxy{}
	for p := range v.Proxies() {
		if p.Served {
			key := ProxyID{p.Cluster, p.NodeID}
			streams[key] = append(streams[key], p)
		}
	}
	for at, key := range slices.SortedFunc(maps.Keys(streams), ProxyID.Compare) {
		r.proxies = append(r.proxies, indexedProxy{key, streams[key]})
		for _, p := range streams[key] {
			r.sure[p.Snapshot] = r.sure[p.Snapshot].with(at)
			for _, d := range p.deliveries {
				r.add(member{at, d})
			}
		}
	}
	return r
}

func (r *proxyIndex) add(m member) {
	d := m.delivery
	if d.Waits { // what is to be sent may be more than is known to be made of an object
		r.sure[d.SnapshotSent] = r.sure[d.SnapshotSent].with(m.proxy)
	}
	if len(d.RefusedSecrets) > 0 {
		r.refusing = append(r.refusing, m)
	}
	r.refused = r.refused || len(d.RefusedSecrets) > 0 || slices.ContainsFunc(d.Open, func(o OpenResource) bool { return o.Refused })
	for _, g := range d.Groups {
		if d.Wildcard {
			r.wildcard[g] = r.wildcard[g].with(m.proxy)
		} else {
			r.members[g] = append(r.members[g], m)
		}
		if len(d.Open) > 0 || d.Bulk != 0 {
			r.open[g] = append(r.open[g], m)
		}
	}
}

// Built are the resources that a group built from an object.
type Built struct {
	Group   Group
	Numbers []uint32
}

// Question is about one object.
type Question struct {
	Object federation.ObjectKey
	Built  []Built
	// Secrets are the names of those to which the object has listeners refer.
	Secrets []string
	// Changed reports whether the object is another one than in the snapshot of that
	// version.
	Changed func(version uint64) bool
}

// Affected are the proxies that get something that was made of an object.
type Affected struct {
	index                                 *proxyIndex
	all, rejected, waiting, delivered     ordinals // each proxy may be in several
	blamed                                ordinals // of rejected: the object is at fault
	errors                                map[int]refusal
	Accepted, Delivered, Waiting, Refused int // proxies, each counted once
	// Visited is how many streams were looked at one by one.
	Visited int
}

// Refused reports whether any proxy refuses anything. It costs the same for every object.
func (v *Value) Refused() bool { return v.index().refused }

// Affected is the progress of proxies with what was made of an object. A proxy that
// has yet to find out what a change of the object means for it is Waiting.
func (v *Value) Affected(q Question) Affected {
	a := Affected{index: v.index(), errors: map[int]refusal{}}
	for _, built := range q.Built {
		a.all = a.all.union(a.index.wildcard[built.Group])
	}
	for _, built := range q.Built {
		a.named(built)
	}
	for _, built := range q.Built {
		a.lacking(built, q.Object)
	}
	a.refusing(q.Secrets)
	var unsure ordinals
	for version, proxies := range a.index.sure {
		if q.Changed(version) {
			unsure = unsure.union(proxies)
		}
	}
	a.rejected = a.rejected.without(unsure) // what it refused is not what there is now
	a.waiting = a.waiting.union(unsure).without(a.rejected)
	a.delivered = a.delivered.without(a.waiting).without(a.rejected)
	a.all = a.all.union(a.waiting).union(a.rejected).union(a.delivered)
	a.Refused, a.Waiting, a.Delivered = a.rejected.count(), a.waiting.count(), a.delivered.count()
	a.Accepted = a.all.count() - a.Refused - a.Waiting - a.Delivered
	return a
}

// named adds the proxies that name one of the resources.
func (a *Affected) named(built Built) {
	for _, m := range a.index.members[built.Group] {
		if a.all.has(m.proxy) {
			continue
		}
		a.Visited++
		if slices.ContainsFunc(built.Numbers, m.delivery.Named.Has) {
			a.all = a.all.with(m.proxy)
		}
	}
}

// lacking notes which of the proxies lack one of the resources.
func (a *Affected) lacking(built Built, key federation.ObjectKey) {
	for _, m := range a.index.open[built.Group] {
		a.Visited++
		for _, number := range built.Numbers {
			switch m.delivery.stateOf(number, key) {
			case Rejected:
				a.reject(m, number, key)
			case Waiting:
				a.waiting = a.waiting.with(m.proxy)
			case Delivered:
				a.delivered = a.delivered.with(m.proxy)
			}
		}
	}
}

// refusal is what a proxy refused, and why.
type refusal struct {
	part, text string
	objects    []federation.ObjectKey
}

// reject notes what the proxy refused of the resource because of the object.
func (a *Affected) reject(m member, number uint32, key federation.ObjectKey) {
	a.rejected = a.rejected.with(m.proxy)
	at, _ := m.delivery.find(number)
	open := m.delivery.Open[at]
	if open.Searching {
		if !a.blamed.has(m.proxy) {
			a.errors[m.proxy] = refusal{text: m.delivery.LastError}
		}
		return
	}
	part := open.Parts[slices.IndexFunc(open.Parts, func(p RefusedPart) bool { return p.madeOf(key) })]
	if known, is := a.errors[m.proxy]; !is || !a.blamed.has(m.proxy) || part.Title < known.part {
		a.errors[m.proxy] = refusal{part.Title, cmp.Or(part.Error, m.delivery.LastError), part.Objects}
	}
	a.blamed = a.blamed.with(m.proxy)
}

// refusing notes which of the proxies refuse one of the secrets.
func (a *Affected) refusing(secrets []string) {
	for _, m := range a.index.refusing {
		if !a.all.has(m.proxy) {
			continue
		}
		at := slices.IndexFunc(m.delivery.RefusedSecrets, func(name string) bool { return slices.Contains(secrets, name) })
		if at >= 0 {
			a.rejected, a.blamed = a.rejected.with(m.proxy), a.blamed.with(m.proxy)
			a.errors[m.proxy] = refusal{part: fmt.Sprintf("secret %q", m.delivery.RefusedSecrets[at]), text: m.delivery.LastError}
		}
	}
}

// Proxies yields every proxy that is affected, by node ID and then by cluster.
func (a Affected) Proxies() iter.Seq[Progress] {
	return func(yield func(Progress) bool) {
		for at := range a.all.each() {
			one := Progress{ProxyID: a.index.proxies[at].key, State: Accepted}
			switch {
			case a.rejected.has(at):
				one.State, one.Searching = Rejected, !a.blamed.has(at)
				one.Part, one.Error, one.Objects = a.errors[at].part, a.errors[at].text, a.errors[at].objects
			case a.waiting.has(at):
				one.State = Waiting
			case a.delivered.has(at):
				one.State = Delivered
			}
			if !yield(one) {
				return
			}
		}
	}
}

// ordinals is a set of proxies by their place in the index. Methods that return a
// set may change the one that they are called on.
type ordinals []uint64

func (o ordinals) has(at int) bool { return at/64 < len(o) && o[at/64]&(1<<(at%64)) != 0 }

func (o ordinals) with(at int) ordinals {
	if missing := at/64 + 1 - len(o); missing > 0 {
		o = append(o, make(ordinals, missing)...)
	}
	o[at/64] |= 1 << (at % 64)
	return o
}

// union adds the others; it returns a set that is not theirs.
func (o ordinals) union(others ordinals) ordinals {
	if missing := len(others) - len(o); missing > 0 {
		o = append(o, make(ordinals, missing)...)
	}
	for i, word := range others {
		o[i] |= word
	}
	return o
}

func (o ordinals) without(others ordinals) ordinals {
	for i := range min(len(o), len(others)) {
		o[i] &^= others[i]
	}
	return o
}

func (o ordinals) count() (n int) {
	for _, word := range o {
		n += bits.OnesCount64(word)
	}
	return n
}

func (o ordinals) each() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, word := range o {
			for ; word != 0; word &= word - 1 {
				if !yield(i*64 + bits.TrailingZeros64(word)) {
					return
				}
			}
		}
	}
}
