package xds

import (
	"cmp"
	"iter"
	"maps"
	"slices"
)

// leaf is what a stream was sent last of the names of a page; nil: nothing, or its removal.
type leaf [pageSize]*resource

// noLeaf is that of pages of which nothing was sent. It is never changed.
var noLeaf leaf

// branch has the leaves of as many pages as a page has names; nil: nothing was sent of those.
type branch [pageSize]*leaf

// delivered is what a stream was sent last of a type, and what of that the client has not accepted
// as it is. It is a value: when something is sent or answered, the stream makes another one,
// which shares with it what is the same. A change copies a leaf, a branch and the list of
// branches, however many resources there are.
type delivered struct {
	branches []*branch
	open     []numberedEntry // sorted by number
}

// numberedEntry is an entry that says whose it is.
type numberedEntry struct {
	number uint32
	entry
}

// with is what follows when these pages have other leaves and these entries are open.
func (t *delivered) with(changed map[int]struct{}, of pages, open map[uint32]entry) *delivered {
	next := &delivered{branches: t.branches}
	if len(changed) > 0 {
		next.branches = slices.Clone(t.branches)
	}
	for at := range changed {
		next.writableBranch(t, at/pageSize)[at%pageSize] = of.leaf(at)
	}
	numbers := slices.AppendSeq(make([]uint32, 0, len(open)), maps.Keys(open))
	slices.Sort(numbers)
	next.open = slices.Grow(next.open, len(open))
	for _, number := range numbers {
		next.open = append(next.open, numberedEntry{number, open[number]})
	}
	return next
}

// writableBranch is a branch that may be changed, since the value before does not have it.
func (t *delivered) writableBranch(before *delivered, at int) *branch {
	if at >= len(t.branches) {
		t.branches = append(t.branches, make([]*branch, at+1-len(t.branches))...)
	}
	switch shared := at < len(before.branches) && t.branches[at] == before.branches[at]; {
	case t.branches[at] == nil:
		t.branches[at] = &branch{}
	case shared:
		own := *t.branches[at]
		t.branches[at] = &own
	}
	return t.branches[at]
}

// Lacks is part of fleet.Told.
func (t *delivered) Lacks(number uint32) bool {
	_, open := slices.BinarySearchFunc(t.open, number, func(e numberedEntry, number uint32) int { return cmp.Compare(e.number, number) })
	return open
}

// all yields the entries of all that was sent or accepted, in no order.
func (t *delivered) all() iter.Seq[entry] {
	return func(yield func(entry) bool) {
		for number, sent := range t.sent() {
			if !t.Lacks(number) && !yield(entry{sent: sent, acked: sent}) {
				return
			}
		}
		for _, e := range t.open {
			if !yield(e.entry) {
				return
			}
		}
	}
}

// sent yields what was sent last, by number.
func (t *delivered) sent() iter.Seq2[uint32, *resource] {
	return func(yield func(uint32, *resource) bool) {
		for number, l := range t.leaves() {
			for i, r := range l {
				if r != nil && !yield(number+uint32(i), r) {
					return
				}
			}
		}
	}
}

// leaves yields those with something, by the first of their numbers.
func (t *delivered) leaves() iter.Seq2[uint32, *leaf] {
	return func(yield func(uint32, *leaf) bool) {
		for i, b := range t.branches {
			if b == nil {
				continue
			}
			for j, l := range b {
				if l != nil && !yield(uint32((i*pageSize+j)*pageSize), l) {
					return
				}
			}
		}
	}
}

// delivered is what the client was sent, as a value for all to read.
func (s *slots) delivered() *delivered {
	if !s.moved {
		return s.value
	}
	s.value = s.value.with(s.fresh, s.pages, s.open)
	for at := range s.fresh {
		if p := s.pages[at]; p != nil {
			p.own = false
		}
	}
	s.moved = false
	if len(s.fresh) > fewNames {
		s.fresh = map[int]struct{}{}
	}
	clear(s.fresh)
	return s.value
}

// leaf is that of a page, which is not changed any more; nil: nothing was sent of its names.
func (all pages) leaf(at int) *leaf {
	if p := all[at]; p != nil && p.sent != &noLeaf {
		return p.sent
	}
	return nil
}

// setSent notes what was sent last under a number.
func (s *slots) setSent(p *page, number uint32, r *resource) {
	if p.sent[number%pageSize] == r {
		return
	}
	if !p.own {
		own := *p.sent
		p.sent, p.own = &own, true
		s.fresh[int(number/pageSize)] = struct{}{}
	}
	p.sent[number%pageSize] = r
}
