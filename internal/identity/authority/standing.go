package authority

import (
	"crypto/x509"
	"maps"
	"slices"
	"time"

	"isthmus.dev/isthmus/federation"
)

// Standing is how the authority is.
type Standing struct {
	Signer  string    // fingerprint; empty: there is no signer
	Ends    time.Time // when the signer's certificate does
	Roots   int
	Trouble error // of the latest look at store and source, or with keys
}

// Standing tells how the authority is now.
func (a *Authority) Standing() Standing {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := Standing{Roots: len(a.state.roots()), Trouble: a.trouble}
	if g, able := a.state.current(a.o.Now()); able {
		s.Signer, s.Ends = fingerprint(g.signer()), g.ends()
	}
	return s
}

// Turn is what a signer does now.
type Turn string

// The turns.
const (
	Waiting  Turn = "WAITING"  // its roots are trusted; it signs later
	Signing  Turn = "SIGNING"  // the one that signs
	Retired  Turn = "RETIRED"  // what it signed is still in use
	Unusable Turn = "UNUSABLE" // its key cannot be opened, or it has ended
)

// SignerStanding is one signer as it is now.
type SignerStanding struct {
	Fingerprint string
	Subject     string
	Turn        Turn
	Own         bool      // the hub made it
	Trusted     time.Time // since when its roots are
	Signs       time.Time // from when on
	Ends        time.Time
}

// Signers are all signers in the order in which they take turns.
func (a *Authority) Signers() []SignerStanding {
	now, s := a.o.Now(), a.now()
	signing, able := s.current(now)
	var all []SignerStanding
	for _, g := range s.generations {
		one := SignerStanding{
			Fingerprint: fingerprint(g.signer()), Subject: g.signer().Subject.String(), Own: g.own,
			Trusted: g.since, Signs: g.signs, Ends: g.ends(), Turn: Retired,
		}
		switch {
		case able && g.signer().Equal(signing.signer()):
			one.Turn = Signing
		case g.broken != nil || !now.Before(g.ends()):
			one.Turn = Unusable
		case g.signs.After(now):
			one.Turn = Waiting
		}
		all = append(all, one)
	}
	return all
}

// RootStanding is one root that is trusted for a trust domain.
type RootStanding struct {
	Fingerprint string
	Subject     string
	Ends        time.Time
	Clusters    []federation.ClusterID // for which a file allows it
}

// Standings are the roots of each trust domain, and the trust domains in order.
func (t *Trust) Standings() (domains []string, roots map[string][]RootStanding) {
	bundles := t.bundles()
	roots = map[string][]RootStanding{}
	for domain, all := range bundles {
		for _, c := range all {
			roots[domain] = append(roots[domain], t.standing(domain, c))
		}
	}
	return slices.Sorted(maps.Keys(bundles)), roots
}

func (t *Trust) standing(domain string, c *x509.Certificate) RootStanding {
	return RootStanding{Fingerprint: fingerprint(c), Subject: c.Subject.String(), Ends: c.NotAfter, Clusters: t.clusters(domain, c)}
}
