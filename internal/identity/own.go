package identity

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"isthmus.dev/isthmus/internal/identity/authority"
)

// Issuer signs certificates; an authority.Authority does.
type Issuer interface {
	Sign(o authority.Order) (authority.Leaf, error)
}

// Roots are what proxies verify each other's certificates with. Its methods must
// not block.
type Roots interface {
	// Bundles are the roots of each trust domain, PEM.
	Bundles() map[string][]byte
	// Changed is closed when they change after the call.
	Changed() <-chan struct{}
}

const (
	// lookEvery is how often the hub looks for certificates to renew: all that are due
	// then change together.
	lookEvery = 10 * time.Second
	// retryEvery is the time between two attempts to sign what could not be signed.
	retryEvery = 10 * time.Second
)

var errNoIssuer = errors.New("this hub signs no certificates (identity.ca: none)")

// own has the secrets that proxies have for themselves: a certificate with a key
// that is generated here for one node and kept only in memory, and the roots.
type own struct {
	options Options
	changed func() // called when a secret changed

	mu           sync.Mutex
	follows      map[Ref][]*subscriber
	certificates map[Ref]certificate
	roots        map[string]Secret // by trust domain of the client; empty: not made yet
}

// subscriber is a client that follows a secret.
type subscriber struct {
	proven func() time.Time // when it last proved who it is; nil: it does so all the time
}

type certificate struct {
	secret Secret
	begins time.Time // it is not valid before
	renew  time.Time // by the clock of the machine: what others verify is that, too, and it may be set
	made   bool      // else it could not be signed
}

// due reports whether the certificate has to be replaced: half of its life is over, or the clock was set back to before it.
func (c certificate) due(now time.Time) bool { return !now.Before(c.renew) || now.Before(c.begins) }

func newOwn(o Options, changed func()) *own {
	return &own{
		options: o, changed: changed, follows: map[Ref][]*subscriber{},
		certificates: map[Ref]certificate{}, roots: map[string]Secret{},
	}
}

// follow keeps the secret up to date while a client follows it.
func (o *own) follow(ref Ref, proven func() time.Time) (done func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	this := &subscriber{proven}
	o.follows[ref] = append(o.follows[ref], this)
	if !ref.Authorities && len(o.follows[ref]) == 1 {
		o.certificates[ref] = o.make(ref)
	}
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.follows[ref] = slices.DeleteFunc(o.follows[ref], func(f *subscriber) bool { return f == this })
		if len(o.follows[ref]) == 0 {
			delete(o.follows, ref)
			delete(o.certificates, ref)
		}
	}
}

func (o *own) secret(ref Ref) (Secret, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !ref.Authorities {
		c := o.certificates[ref]
		return c.secret, c.made
	}
	w, err := authority.ParseWorkload(ref.Workload)
	if err != nil || o.options.Roots == nil {
		return Secret{}, false
	}
	known, is := o.roots[w.TrustDomain]
	if !is {
		known = rootsFor(w.TrustDomain, o.options.Roots.Bundles())
		o.roots[w.TrustDomain] = known
	}
	return known, known.Fingerprint != ""
}

// rootsFor is what a workload of the trust domain verifies with. Where its own is
// the only one, plain roots do.
func rootsFor(domain string, bundles map[string][]byte) Secret {
	var m Material
	switch {
	case len(bundles[domain]) == 0:
		return Secret{}
	case len(bundles) == 1:
		m.Authorities = bundles[domain]
	default:
		m.Bundles = bundles
	}
	return Secret{Material: m, Fingerprint: m.fingerprint()}
}

// make signs a certificate for a new key; it is renewed when half of its life is
// over.
func (o *own) make(ref Ref) certificate {
	now := o.options.Now()
	s, leaf, err := o.sign(ref)
	if err != nil {
		o.options.Logger.Error("a proxy has no certificate of its own; the hub retries",
			slog.String("node", ref.Node), slog.String("cluster", string(ref.Cluster)), slog.String("workload", ref.Workload), slog.Any("err", err))
		return certificate{renew: now.Add(retryEvery)}
	}
	return certificate{secret: s, begins: leaf.Begins, renew: now.Round(0).Add(leaf.Ends.Sub(now) / 2), made: true}
}

func (o *own) sign(ref Ref) (Secret, authority.Leaf, error) {
	w, err := authority.ParseWorkload(ref.Workload)
	if err != nil {
		return Secret{}, authority.Leaf{}, err
	}
	if o.options.Issuer == nil {
		return Secret{}, authority.Leaf{}, errNoIssuer
	}
	key, text, err := authority.NewKey()
	if err != nil {
		return Secret{}, authority.Leaf{}, err
	}
	leaf, err := o.options.Issuer.Sign(authority.Order{Workload: w, Cluster: ref.Cluster, Key: key.Public(), Proven: o.proven(ref)})
	if err != nil {
		return Secret{}, authority.Leaf{}, err
	}
	m := Material{Chain: leaf.Chain, Key: text}
	o.options.Logger.Info("a proxy got a certificate", slog.String("method", "sds"), slog.String("node", ref.Node),
		slog.String("cluster", string(ref.Cluster)),
		slog.String("workload", ref.Workload), slog.String("serial", leaf.Serial), slog.Time("expires", leaf.Ends))
	return Secret{Material: m, Fingerprint: m.fingerprint(), Expires: leaf.Ends}, leaf, nil
}

// proven is when one of those who follow the secret last proved who it is.
func (o *own) proven(ref Ref) time.Time {
	var last time.Time
	for _, f := range o.follows[ref] {
		if f.proven == nil {
			return o.options.Now()
		}
		if at := f.proven(); at.After(last) {
			last = at
		}
	}
	return last
}

// run renews certificates and loads changed roots until the context ends.
func (o *own) run(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	var others <-chan struct{} // nil for ever: there are no roots
	for {
		if o.options.Roots != nil {
			others = o.options.Roots.Changed()
		}
		if o.renew() {
			o.changed()
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-others:
		}
	}
}

// renew reports whether a secret changed.
func (o *own) renew() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	others, now := false, o.options.Now()
	for ref, c := range o.certificates {
		if !c.due(now) {
			continue
		}
		next := o.make(ref)
		if !next.made {
			c.renew = next.renew // the one before stays
			next = c
		}
		others = others || next.made && next.secret.Fingerprint != c.secret.Fingerprint
		o.certificates[ref] = next
	}
	if o.options.Roots == nil {
		return others
	}
	bundles := o.options.Roots.Bundles()
	for domain, known := range o.roots {
		if now := rootsFor(domain, bundles); now.Fingerprint != known.Fingerprint {
			o.roots[domain], others = now, true
		}
	}
	return others
}
