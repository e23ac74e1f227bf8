package kubernetes

import (
	"crypto/sha256"
	"errors"
	"sync"

	"isthmus.dev/isthmus/federation"
)

// budget bounds what the API server makes the registry keep: what the model has,
// the lists that are being read, and the events that wait for the follower (R06).
type budget struct {
	limits federation.Limits
	used   func(federation.Usage) // is told what use says

	mu     sync.Mutex
	held   [kinds]federation.Usage // in the model
	listed [kinds]federation.Usage // of a list that takes the place of what is held
	queued [kinds]federation.Usage // on its way to the model
}

func newBudget(limits federation.Limits, used func(federation.Usage)) *budget {
	return &budget{limits: limits.WithDefaults(), used: used}
}

// list counts an object of a list that is being read.
func (b *budget) list(o object, of kind) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.listed[of] = b.listed[of].Add(federation.Usage{Objects: 1, Bytes: o.size()})
	return b.check()
}

// unlist forgets the list: it was dropped, or begins again.
func (b *budget) unlist(of kind) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.listed[of] = federation.Usage{}
}

// queue counts an object that a watch sent.
func (b *budget) queue(o object, of kind) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.queued[of]
	b.queued[of] = before.Add(federation.Usage{Objects: 1, Bytes: o.size()})
	if err := b.check(); err != nil {
		b.queued[of] = before
		return err
	}
	return nil
}

// hold notes what the model holds of a kind.
func (b *budget) hold(of kind, held federation.Usage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held[of] = held
}

// unqueue takes back what queue counted: the model has the object, or it was
// dropped.
func (b *budget) unqueue(o object, of kind) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queued[of] = b.queued[of].Add(federation.Usage{Objects: -1, Bytes: -o.size()})
}

// check adds up. The caller holds the lock.
func (b *budget) check() error {
	var all federation.Usage
	for k := range kinds {
		all = all.Add(larger(b.held[k], b.listed[k])).Add(b.queued[k])
	}
	return b.limits.Check(all)
}

// show tells what the model holds, and how far lists have come that take the place
// of it: one that never ends is seen to grow.
func (b *budget) show() {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all federation.Usage
	for k := range kinds {
		all = all.Add(larger(b.held[k], b.listed[k]))
	}
	b.used(all)
}

func larger(a, b federation.Usage) federation.Usage {
	return federation.Usage{Objects: max(a.Objects, b.Objects), Bytes: max(a.Bytes, b.Bytes)}
}

// pages counts the pages of one list.
type pages struct {
	limit int
	seen  map[[sha256.Size]byte]bool
}

// next takes the continue token of a page. A token that was there before would
// lead round in a circle.
func (p *pages) next(token string) error {
	if p.seen == nil {
		p.seen = map[[sha256.Size]byte]bool{}
	}
	id := sha256.Sum256([]byte(token))
	switch {
	case p.seen[id]:
		return ownError("the server gave the same continue token twice: the list has no end; nothing of it is used")
	case len(p.seen) >= p.limit:
		return federation.LimitError{Limit: "pages", Most: int64(p.limit)}
	}
	p.seen[id] = true
	return nil
}

// What strings, maps and the structures around them take, roughly.
const (
	recordSize   = 256
	stringSize   = 16
	mapEntrySize = 48
)

func textSize(texts ...string) (n int64) {
	for _, t := range texts {
		n += int64(len(t)) + stringSize
	}
	return n
}

func mapSize(m map[string]string) (n int64) {
	for k, v := range m {
		n += int64(len(k)+len(v)) + mapEntrySize
	}
	return n
}

func (r *record) size() int64 {
	n := recordSize + textSize(r.k.Namespace, r.k.Name, r.version)
	for _, p := range r.problems {
		n += textSize(p.Code, p.Object, p.Field, p.Message)
	}
	return n
}

func (s *service) size() int64 {
	n := s.record.size() + recordSize + mapSize(s.shard.Labels) + textSize(string(s.service.Hostname), s.shard.UID) + textSize(s.shard.ExportTo...)
	for _, p := range s.shard.Ports {
		n += textSize(p.Name) + stringSize
	}
	if s.shard.Selector != nil {
		n += mapSize(s.shard.Selector.Labels) + mapSize(s.shard.Selector.TargetNames) + int64(len(s.shard.Selector.TargetPorts))*mapEntrySize
	}
	return n + int64(len(s.shard.External)+len(s.shard.VIPs))*mapEntrySize
}

func (s *slice) size() int64 {
	n := s.record.size() + textSize(s.service)
	for _, p := range s.ports {
		n += textSize(p.Name) + stringSize
	}
	for i := range s.endpoints {
		e := &s.endpoints[i]
		n += recordSize + textSize(e.hostname, e.pod, e.podUID, e.node, e.zone)
	}
	return n
}

func (p *pod) size() int64 {
	n := p.record.size() + mapSize(p.labels) + textSize(p.uid, p.account, p.node) + int64(len(p.ips))*mapEntrySize
	for i := range p.probes {
		n += 2*recordSize + textSize(p.probes[i].Container, p.probes[i].Path, p.probes[i].Service)
	}
	return n
}

func (n *node) size() int64 {
	return n.record.size() + textSize(n.locality.Region, n.locality.Zone, n.locality.SubZone)
}

// swap counts an object that takes the place of another one; nil is none.
func swap[T any, P interface {
	*T
	object
}](u *federation.Usage, old, now P) {
	if old != nil {
		*u = u.Add(federation.Usage{Objects: -1, Bytes: -old.size()})
	}
	if now != nil {
		*u = u.Add(federation.Usage{Objects: 1, Bytes: now.size()})
	}
}

// limited tells whether the server has more than it may.
func limited(err error) bool {
	var limit federation.LimitError
	return errors.As(err, &limit)
}
