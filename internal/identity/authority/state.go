package authority

import (
	"crypto/x509"
	"errors"
	"slices"
	"time"
)

// Policy says how signers take turns.
type Policy struct {
	Leaf    time.Duration // that a certificate lives at most; default 24 h
	Overlap time.Duration // between a new root's coming into the bundle and its first signature; default Leaf
	Proof   time.Duration // that a proof of identity counts for renewals by certificate; default 24 h, and no less than Leaf
	Root    time.Duration // that a root lives which the hub makes; default 10 years
}

func (p Policy) withDefaults() Policy {
	if p.Leaf <= 0 {
		p.Leaf = 24 * time.Hour
	}
	if p.Overlap <= 0 {
		p.Overlap = p.Leaf
	}
	if p.Proof <= 0 {
		p.Proof = max(24*time.Hour, p.Leaf)
	}
	if p.Root <= 0 {
		p.Root = 10 * 365 * 24 * time.Hour
	}
	return p
}

// state is all signers in the order in which they take turns. It is a value.
type state struct{ generations []generation }

// current is the one that signs now; false: none can.
func (s state) current(now time.Time) (generation, bool) {
	for _, g := range slices.Backward(s.generations) {
		if g.key != nil && !g.signs.After(now) && now.Before(g.ends()) {
			return g, true
		}
	}
	return s.afterSetback(now)
}

// afterSetback is the one that signs although its turn is in the future: the hub's clock was set
// back. Its turn has come before, since the key of the one before it is gone; false: there is none.
func (s state) afterSetback(now time.Time) (generation, bool) {
	for i, g := range s.generations {
		had := i == 0 || s.generations[i-1].key == nil && s.generations[i-1].broken == nil
		if had && g.key != nil && !now.Before(g.signer().NotBefore) && now.Before(g.ends()) {
			return g, true
		}
	}
	return generation{}, false
}

// broken is why a key cannot be used of a signer that has not had its turn; nil: all
// can.
func (s state) broken() error {
	var all []error
	for _, g := range s.generations {
		all = append(all, g.broken)
	}
	return errors.Join(all...)
}

// newest is the last in the order.
func (s state) newest() (generation, bool) {
	if len(s.generations) == 0 {
		return generation{}, false
	}
	return s.generations[len(s.generations)-1], true
}

// roots are those that are trusted, each once.
func (s state) roots() []*x509.Certificate {
	var all []*x509.Certificate
	for _, g := range s.generations {
		for _, root := range g.roots {
			if !contains(all, root) {
				all = append(all, root)
			}
		}
	}
	return all
}

// signed reports whether the certificate is that of one of the signers.
func (s state) signed(c *x509.Certificate) bool {
	return slices.ContainsFunc(s.generations, func(g generation) bool { return g.signer().Equal(c) })
}

// add adds a signer. It signs at once where no other can, or where all
// of its roots are trusted already for as long as the overlap; else its roots are
// trusted at once, and it signs after the overlap.
func (s state) add(g generation, now time.Time, p Policy) state {
	g.since, g.signs, g.longest = now, now, p.Leaf
	if _, somebody := s.current(now); somebody {
		g.signs = s.trusted(g.roots, now).Add(p.Overlap)
		if g.signs.Before(now) {
			g.signs = now
		}
	}
	next := slices.Clone(s.generations)
	if last, some := s.newest(); some && g.signs.Before(last.signs) {
		next[len(next)-1].signs = g.signs // it takes the turn of one that has not had it yet
	}
	return state{append(next, g)}
}

// trusted is since when all of the roots are; now where one is new.
func (s state) trusted(roots []*x509.Certificate, now time.Time) time.Time {
	var last time.Time
	for _, root := range roots {
		since := now
		for _, g := range s.generations {
			if contains(g.roots, root) {
				since = earlier(since, g.since)
			}
		}
		if since.After(last) {
			last = since
		}
	}
	return last
}

// dropExpired drops the keys of those that sign no more, and the signers whose last
// certificate has expired. changed reports whether something was dropped, or that
// certificates live longer than was known.
func (s state) dropExpired(now time.Time, p Policy) (next state, changed bool) {
	for i, g := range s.generations {
		signsLast := i == len(s.generations)-1
		switch over := !signsLast && !s.generations[i+1].signs.After(now); {
		case over && !now.Before(s.generations[i+1].signs.Add(g.longest+2*skew)):
			changed = true
			continue
		case over && (g.key != nil || g.broken != nil):
			g.key, g.sealed = nil, nil
			g.broken, changed = nil, true
		case !over && g.longest < p.Leaf:
			g.longest, changed = p.Leaf, true
		}
		next.generations = append(next.generations, g)
	}
	return next, changed
}

// due reports whether the hub is to make a root: there is none of its own, or the
// last third of its life has begun.
func (s state) due(now time.Time) bool {
	g, some := s.newest()
	if !some || !g.own {
		return true
	}
	life := g.signer().NotAfter.Sub(g.signer().NotBefore)
	return !now.Before(g.signer().NotAfter.Add(-life / 3))
}
