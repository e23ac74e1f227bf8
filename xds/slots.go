package xds

import (
	"iter"
	"math/bits"

	"isthmus.dev/isthmus/federation/fleet"
)

// pageSize is the number of names in a page: the bits of a word.
const pageSize = 64

// fewNames is the number of names up to which maps and slices grow on their own.
const fewNames = 8

// page is what a stream keeps of that many names with neighbouring numbers.
type page struct {
	sent   *leaf  // sent last; changed only while it is own
	own    bool   // no value has it
	held   uint64 // numbers that the stream holds in the table
	named  uint64 // subscribed to by name
	paid   uint64 // counted in the account: there was no resource of that name
	rewarm uint64 // the client may ask for it once more, since its parent was sent
}

// pages are by number / pageSize; nil: nothing is kept of these.
type pages []*page

// numbered yields the numbers whose bits are set in the word that of returns.
func (all pages) numbered(of func(*page) uint64) iter.Seq2[uint32, *page] {
	return func(yield func(uint32, *page) bool) {
		for at, p := range all {
			if p == nil {
				continue
			}
			for left := of(p); left != 0; left &= left - 1 {
				if !yield(uint32(at*pageSize+bits.TrailingZeros64(left)), p) {
					return
				}
			}
		}
	}
}

// held yields the numbers that the stream holds in the table.
func (all pages) held() iter.Seq2[uint32, *page] {
	return all.numbered(func(p *page) uint64 { return p.held })
}

// slots are what one stream knows of the resources of a type: a pointer for each,
// and more only for those that the client has not accepted as they were sent
// last. They are for one goroutine; others read the values that delivered returns.
type slots struct {
	names   *nameTable
	account *account
	excess  error // why the account does not take what the client asks for
	pages   pages
	open    map[uint32]entry // not accepted as they were sent last
	named   int              // names that are subscribed to
	value   *delivered       // made last
	moved   bool             // sent or open have changed since
	fresh   map[int]struct{} // pages whose leaves have
	// published is the set of these as others may read it; nil: it is to be made.
	published fleet.Numbers
}

func newSlots(names *nameTable, of *account) *slots {
	return &slots{names: names, account: of, open: map[uint32]entry{}, value: &delivered{}, fresh: map[int]struct{}{}}
}

// find returns the page of a name of which something is kept, and the name as the table has it; else nil.
// A number that the stream holds is that of the same name, whatever others do to the table.
func (s *slots) find(name string) (*page, *numberedName) {
	if len(s.pages) == 0 {
		return nil, nil
	}
	n := s.names.find(name)
	if n == nil || int(n.number/pageSize) >= len(s.pages) {
		return nil, nil
	}
	if p := s.pages[n.number/pageSize]; p != nil && p.held&bit(n.number) != 0 {
		return p, n
	}
	return nil, nil
}

func bit(number uint32) uint64 { return 1 << (number % pageSize) }

// hold is find for a name of which something is going to be kept.
func (s *slots) hold(name string) (*page, *numberedName) {
	if p, n := s.find(name); p != nil {
		return p, n
	}
	return s.add(name)
}

// add is hold for a name of which nothing is kept yet.
func (s *slots) add(name string) (*page, *numberedName) {
	n, exists := s.names.hold(name)
	at := int(n.number / pageSize)
	if at >= len(s.pages) {
		s.pages = append(s.pages, make([]*page, at+1-len(s.pages))...)
	}
	if s.pages[at] == nil {
		s.pages[at] = &page{sent: &noLeaf}
	}
	p := s.pages[at]
	p.held |= bit(n.number)
	if exists {
		return p, n
	}
	if err := s.account.addName(n.number, len(name)); err != nil {
		s.excess = err
		return p, n
	}
	p.paid |= bit(n.number)
	return p, n
}

// letGo ends what hold began, but for the page.
func (s *slots) letGo(p *page, number uint32) {
	p.held &^= bit(number)
	if p.paid&bit(number) != 0 {
		p.paid &^= bit(number)
		s.account.removeName(number, len(s.names.name(number)))
	}
	s.names.release(number)
}

// name is the table's copy of a name that the stream holds, else the name itself. What
// is kept for long must not be a copy for each request.
func (s *slots) name(name string) string {
	if _, n := s.find(name); n != nil {
		return n.name
	}
	return name
}

// tidy lets go of a name of which nothing is kept any more.
func (s *slots) tidy(p *page, number uint32) {
	_, open := s.open[number]
	if open || p.sent[number%pageSize] != nil || (p.named|p.rewarm)&bit(number) != 0 {
		return
	}
	s.letGo(p, number)
	if p.held == 0 {
		s.pages[number/pageSize] = nil
		s.fresh[int(number/pageSize)], s.moved = struct{}{}, true
	}
}

func (s *slots) get(name string) entry {
	p, n := s.find(name)
	if p == nil {
		return entry{}
	}
	return s.at(p, n.number)
}

func (s *slots) at(p *page, number uint32) entry {
	if e, open := s.open[number]; open {
		return e
	}
	sent := p.sent[number%pageSize]
	return entry{sent: sent, acked: sent}
}

// claim puts what the client says it has.
func (s *slots) claim(name, version string) *resource {
	p, n := s.hold(name)
	c := claimed(n.name, version)
	s.setSent(p, n.number, c)
	s.moved = true
	return c
}

func (s *slots) set(name string, e entry) {
	s.update(name, func(entry) entry { return e })
}

// update replaces the entry of the name by the result of change, and returns it.
func (s *slots) update(name string, change func(entry) entry) entry {
	p, n := s.find(name)
	var old entry
	if p != nil {
		old = s.at(p, n.number)
	}
	e := change(old)
	if e == old {
		return e
	}
	if p == nil {
		p, n = s.add(name)
	}
	s.setSent(p, n.number, e.sent)
	s.moved = true
	switch {
	case e.acked != e.sent || e.lapsed:
		s.open[n.number] = e
	case len(s.open) == 0:
	default:
		delete(s.open, n.number)
		if len(s.open) == 0 {
			s.open = map[uint32]entry{} // a map that was great once stays great
		}
	}
	s.tidy(p, n.number)
	return e
}

// makeRoom makes room for n resources that are going to be sent.
func makeRoom(s *slots, n int) {
	if len(s.open) == 0 && n > fewNames {
		s.open = make(map[uint32]entry, n)
	}
}

// all yields everything of which something was sent or accepted.
func (s *slots) all() iter.Seq2[string, entry] {
	return func(yield func(string, entry) bool) {
		for number, p := range s.pages.held() {
			if e := s.at(p, number); e != (entry{}) && !yield(s.names.name(number), e) {
				return
			}
		}
	}
}

// namesIn yields the names whose bits are set in the word that of returns.
func namesIn(s *slots, of func(*page) uint64) iter.Seq[string] {
	return func(yield func(string) bool) {
		for number := range s.pages.numbered(of) {
			if !yield(s.names.name(number)) {
				return
			}
		}
	}
}

func (s *slots) isNamed(name string) bool {
	p, n := s.find(name)
	return p != nil && p.named&bit(n.number) != 0
}

// allNamed yields the names that are subscribed to.
func (s *slots) allNamed() iter.Seq[string] {
	return namesIn(s, func(p *page) uint64 { return p.named })
}

// subscribe notes that the name is subscribed to, and returns the table's copy of it; added is
// false if it was already.
func (s *slots) subscribe(name string) (kept string, added bool) {
	p, n := s.hold(name)
	if p.named&bit(n.number) != 0 {
		return n.name, false
	}
	p.named |= bit(n.number)
	s.named++
	s.published = nil
	return n.name, true
}

func (s *slots) unsubscribe(name string) {
	p, n := s.find(name)
	if p == nil || p.named&bit(n.number) == 0 {
		return
	}
	p.named &^= bit(n.number)
	s.named--
	s.published = nil
	s.tidy(p, n.number)
}

// subscribed is the set of the names that are subscribed to, by number.
func (s *slots) subscribed() fleet.Numbers {
	if s.published == nil && s.named > 0 {
		s.published = make(fleet.Numbers, len(s.pages))
		for at, p := range s.pages {
			if p != nil {
				s.published[at] = p.named
			}
		}
	}
	return s.published
}

// without returns the names that are subscribed to and are not among these.
func without(s *slots, names []string) []string {
	stay, seen := make([]uint64, len(s.pages)), 0
	for _, name := range names {
		p, n := s.find(name)
		if p == nil || p.named&bit(n.number) == 0 || stay[n.number/pageSize]&bit(n.number) != 0 {
			continue
		}
		stay[n.number/pageSize] |= bit(n.number)
		seen++
	}
	if seen == s.named {
		return nil
	}
	var gone []string
	for number := range s.pages.numbered(func(p *page) uint64 { return p.named }) {
		if stay[number/pageSize]&bit(number) == 0 {
			gone = append(gone, s.names.name(number))
		}
	}
	return gone
}

func (s *slots) rewarm(name string) {
	p, n := s.hold(name)
	p.rewarm |= bit(n.number)
}

// asked returns the table's copy of a name (as name does), what the client was sent last under
// it, and whether the client may ask for it once more.
func (s *slots) asked(name string) (kept string, sent *resource, rewarmed bool) {
	p, n := s.find(name)
	if p == nil {
		return name, nil, false
	}
	return n.name, p.sent[n.number%pageSize], p.rewarm&bit(n.number) != 0
}

func (s *slots) allRewarmed() iter.Seq[string] {
	return namesIn(s, func(p *page) uint64 { return p.rewarm })
}

// forgetRewarm forgets it of one name, or of all.
func (s *slots) forgetRewarm(name string) {
	if p, n := s.find(name); p != nil && p.rewarm&bit(n.number) != 0 {
		p.rewarm &^= bit(n.number)
		s.tidy(p, n.number)
	}
}

func (s *slots) forgetAllRewarm() {
	for number, p := range s.pages.numbered(func(p *page) uint64 { return p.rewarm }) {
		p.rewarm &^= bit(number)
		s.tidy(p, number)
	}
}

// close lets go of all names.
func (s *slots) close() {
	for number, p := range s.pages.held() {
		s.letGo(p, number)
	}
	s.pages, s.open = nil, nil
	s.named, s.value = 0, nil
}
