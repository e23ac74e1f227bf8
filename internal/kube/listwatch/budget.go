package listwatch

import (
	"sync"

	"isthmus.dev/isthmus/federation"
)

// Budget bounds what the API server makes one user of a cluster keep: what it has, the
// lists that are being read, and the changes that it has not handled yet (R06).
type Budget struct {
	limits federation.Limits
	used   func(federation.Usage)

	mu     sync.Mutex
	shares []*Share
}

// NewBudget makes a budget without a share. Zero limits are the defaults. used is called
// with the usage, at Show; it must not block; nil: not called.
func NewBudget(limits federation.Limits, used func(federation.Usage)) *Budget {
	if used == nil {
		used = func(federation.Usage) {}
	}
	return &Budget{limits: limits.WithDefaults(), used: used}
}

// Share is what one resource takes of a budget.
type Share struct {
	of     *Budget
	held   federation.Usage // what the user has
	listed federation.Usage // of a list that takes the place of what is held
	queued federation.Usage // on its way to the user
}

// Share makes the share of one more resource.
func (b *Budget) Share() *Share {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &Share{of: b}
	b.shares = append(b.shares, s)
	return s
}

// Replaced records that the sink accepted a list, and what it holds now.
func (s *Share) Replaced(held federation.Usage) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.held, s.listed = held, federation.Usage{}
}

// Took records that the sink accepted an object of this size, and what it holds
// now.
func (s *Share) Took(size int64, held federation.Usage) {
	s.unqueue(size)
	s.Holds(held)
}

// Holds records what the sink holds now.
func (s *Share) Holds(held federation.Usage) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.held = held
}

// list counts an object of a list that is being read.
func (s *Share) list(size int64) error {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.listed = s.listed.Add(federation.Usage{Objects: 1, Bytes: size})
	return s.of.check()
}

// unlist forgets the list: it was dropped, or begins again.
func (s *Share) unlist() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.listed = federation.Usage{}
}

// queue counts an object that a watch sent.
func (s *Share) queue(size int64) error {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	before := s.queued
	s.queued = before.Add(federation.Usage{Objects: 1, Bytes: size})
	if err := s.of.check(); err != nil {
		s.queued = before
		return err
	}
	return nil
}

// unqueue takes back what queue counted.
func (s *Share) unqueue(size int64) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.queued = s.queued.Add(federation.Usage{Objects: -1, Bytes: -size})
}

// check adds up. The caller holds the lock.
func (b *Budget) check() error {
	var all federation.Usage
	for _, s := range b.shares {
		all = all.Add(larger(s.held, s.listed)).Add(s.queued)
	}
	return b.limits.Check(all)
}

// Show tells what is held, and the progress of lists that will replace it: one
// that never ends is seen to grow.
func (b *Budget) Show() {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all federation.Usage
	for _, s := range b.shares {
		all = all.Add(larger(s.held, s.listed))
	}
	b.used(all)
}

func larger(a, b federation.Usage) federation.Usage {
	return federation.Usage{Objects: max(a.Objects, b.Objects), Bytes: max(a.Bytes, b.Bytes)}
}
