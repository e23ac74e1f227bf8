package authority

import (
	"crypto/x509"
	"maps"
	"slices"
	"time"

	"isthmus.dev/isthmus/federation"
)

// Status is how the authority is.
type Status struct {
	Signer   string    // fingerprint; empty: there is no signer
	Ends     time.Time // when the signer's certificate does
	RootEnds time.Time // when the root does to which that certificate leads
	Roots    int
	Trouble  error // of the latest look at store and source, or with keys
}

// Status tells how the authority is now.
func (a *Authority) Status() Status {
	a.mu.Lock()
	s := Status{Roots: len(a.state.roots()), Trouble: a.trouble}
	g, able := a.state.current(a.o.Now())
	a.mu.Unlock()
	if able {
		s.Signer, s.Ends, s.RootEnds = fingerprint(g.signer()), g.ends(), g.rootEnds()
	}
	return s
}

// SignerState is what a signer does now.
type SignerState string

// The states of a signer.
const (
	Waiting  SignerState = "WAITING"  // its roots are trusted; it signs later
	Signing  SignerState = "SIGNING"  // the one that signs
	Retired  SignerState = "RETIRED"  // what it signed is still in use
	Unusable SignerState = "UNUSABLE" // its key cannot be opened, or it has ended
)

// SignerStatus is one signer as it is now.
type SignerStatus struct {
	Fingerprint string
	Subject     string
	State       SignerState
	Own         bool      // the hub made it
	Trusted     time.Time // since when its roots are
	Signs       time.Time // from when on
	Ends        time.Time
}

// Signers are all signers in the order in which they take turns.
func (a *Authority) Signers() []SignerStatus {
	now, s := a.o.Now(), a.now()
	signing, able := s.current(now)
	var all []SignerStatus
	for _, g := range s.generations {
		one := SignerStatus{
			Fingerprint: fingerprint(g.signer()), Subject: g.signer().Subject.String(), Own: g.own,
			Trusted: g.since, Signs: g.signs, Ends: g.ends(), State: Retired,
		}
		switch {
		case able && g.signer().Equal(signing.signer()):
			one.State = Signing
		case g.broken != nil || !now.Before(g.ends()):
			one.State = Unusable
		case g.signs.After(now):
			one.State = Waiting
		}
		all = append(all, one)
	}
	return all
}

// RootStatus is one root that is trusted for a trust domain.
type RootStatus struct {
	Fingerprint string
	Subject     string
	Ends        time.Time
	Clusters    []federation.ClusterID // for which a file allows it
}

// RootStatuses are the roots of each trust domain, and the trust domains in order.
func (t *Trust) RootStatuses() (domains []string, roots map[string][]RootStatus) {
	bundles := t.bundles()
	roots = map[string][]RootStatus{}
	for domain, all := range bundles {
		for _, c := range all {
			roots[domain] = append(roots[domain], t.rootStatus(domain, c))
		}
	}
	return slices.Sorted(maps.Keys(bundles)), roots
}

func (t *Trust) rootStatus(domain string, c *x509.Certificate) RootStatus {
	return RootStatus{Fingerprint: fingerprint(c), Subject: c.Subject.String(), Ends: c.NotAfter, Clusters: t.clusters(domain, c)}
}
