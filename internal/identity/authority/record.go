package authority

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Sealer encrypts for a place, which is not part of the result. Its errors hold
// nothing of the secret.
type Sealer interface {
	Seal(secret []byte, place string) ([]byte, error)
	Open(sealed []byte, place string) ([]byte, error)
}

// record is the state as it is stored.
type record struct {
	TrustDomain string             `json:"trustDomain"`
	Generations []generationRecord `json:"generations"`
}

type generationRecord struct {
	Chain   string        `json:"chain"` // PEM
	Roots   string        `json:"roots"` // PEM
	Key     []byte        `json:"sealedKey,omitempty"`
	Since   time.Time     `json:"since"`
	Signs   time.Time     `json:"signs"`
	Longest time.Duration `json:"longestNanoseconds"`
	Own     bool          `json:"own"`
}

// maxRecord is the largest record in bytes.
const maxRecord = 1 << 20

// place says whose secret is sealed, so that it cannot be put in another's place.
func place(domain string, signer *x509.Certificate) string {
	return "authority/" + domain + "/" + fingerprint(signer)
}

func (s state) encode(domain string, keys Sealer) ([]byte, error) {
	r := record{TrustDomain: domain}
	for _, g := range s.generations {
		one := generationRecord{
			Chain: string(encodeAll(g.chain)), Roots: string(encodeAll(g.roots)),
			Since: g.since.UTC(), Signs: g.signs.UTC(), Longest: g.longest, Own: g.own,
		}
		if g.broken != nil {
			one.Key = g.sealed // it may be opened again with the right keys
		}
		if g.key != nil {
			der, err := x509.MarshalPKCS8PrivateKey(g.key)
			if err != nil {
				return nil, errors.New("storing the authority: the key cannot be encoded")
			}
			one.Key, err = keys.Seal(der, place(domain, g.signer()))
			if err != nil {
				return nil, fmt.Errorf("storing the authority: %w", err)
			}
		}
		r.Generations = append(r.Generations, one)
	}
	return json.Marshal(r)
}

// ErrUnusable is the error of a stored authority, or of its keys, that cannot be
// opened. Nothing is written over it.
var ErrUnusable = errors.New("the stored certificate authority cannot be used")

// decode reads what encode made. A record of another trust domain is an error:
// its certificates would be worth nothing. A key that cannot be opened is not an error:
// its signer's roots are trusted all the same.
func decode(stored []byte, domain string, keys Sealer) (state, error) {
	if len(stored) > maxRecord {
		return state{}, fmt.Errorf("%w: it has %d bytes, at most %d are read", ErrUnusable, len(stored), maxRecord)
	}
	var r record
	if err := json.Unmarshal(stored, &r); err != nil {
		return state{}, fmt.Errorf("%w: it is not a record of one; restore the store from a backup", ErrUnusable)
	}
	if r.TrustDomain != domain {
		return state{},
			fmt.Errorf("the stored authority is that of the trust domain %q, not of %q; set the trust domain back, or remove it to start again",
				r.TrustDomain, domain)
	}
	var s state
	for i, one := range r.Generations {
		g, err := one.decode(domain, keys)
		if err != nil {
			return state{}, fmt.Errorf("%w: signer %d: %w; restore the store from a backup", ErrUnusable, i+1, err)
		}
		s.generations = append(s.generations, g)
	}
	return s, nil
}

func (r generationRecord) decode(domain string, keys Sealer) (generation, error) {
	chain, err := ParseCertificates("chain", []byte(r.Chain))
	if err != nil {
		return generation{}, err
	}
	roots, err := ParseCertificates("roots", []byte(r.Roots))
	if err != nil {
		return generation{}, err
	}
	g := generation{chain: chain, roots: roots, since: r.Since, signs: r.Signs, longest: r.Longest, own: r.Own, sealed: r.Key}
	if len(r.Key) == 0 {
		return g, nil
	}
	der, err := keys.Open(r.Key, place(domain, g.signer()))
	if err != nil {
		g.broken = fmt.Errorf("%w: the key of the signer %s: %w; give the hub the key file with which it was sealed (--seal-key), or rotate with force", ErrUnusable, short(g.signer()), err)
		return g, nil
	}
	g.key, err = parseKey(der)
	if err != nil || !sameKey(g.signer().PublicKey, g.key.Public()) {
		g.key, g.broken = nil, fmt.Errorf("%w: the key of the signer %s is not that of its certificate", ErrUnusable, short(g.signer()))
	}
	return g, nil
}

// short is enough of a fingerprint for people.
func short(c *x509.Certificate) string { return fingerprint(c)[:16] }
