package authority

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// Store keeps one value that all replicas of the hub share.
type Store interface {
	// Load returns the value and its revision; revision 0: there is none.
	Load(ctx context.Context) (value []byte, revision int64, err error)
	// Save stores the value if the revision is still that; saved false: it is not.
	Save(ctx context.Context, value []byte, revision int64) (saved bool, err error)
}

// Source has an intermediate of someone else.
type Source interface {
	Read(ctx context.Context) (Files, error)
}

// Options are what an Authority works with. TrustDomain, Store and Keys are
// required.
type Options struct {
	TrustDomain string
	Policy      Policy
	Store       Store
	Keys        Sealer
	Stale       func(sealed []byte) bool // reports whether to reseal it; nil: never
	Source      Source                   // nil: the hub makes its own roots
	Late        bool                     // the source may come after the start; until then there is no signer
	Poll        time.Duration            // how often Run looks at store and source; default 30 s
	Now         func() time.Time         // default time.Now
	Logger      *slog.Logger             // default slog.Default
}

// Authority signs certificates of workloads. It may be used by several
// goroutines; nothing of it blocks but Open, Run and Rotate.
type Authority struct {
	o Options

	turn *semaphore.Weighted // of what changes the stored state

	mu       sync.Mutex
	state    state
	revision int64
	trouble  error // of the latest look; what was found before stays in use
	changed  chan struct{}
}

// Open reads the stored state, and makes a first signer where there is none.
// With a source that cannot be read it opens without, if there is a stored state.
// Where what is stored cannot be used it opens too: it signs nothing until it can
// be, and Status says why.
func Open(ctx context.Context, o Options) (*Authority, error) {
	o.Policy = o.Policy.withDefaults()
	if o.Poll <= 0 {
		o.Poll = 30 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if err := CheckTrustDomain(o.TrustDomain); err != nil {
		return nil, err
	}
	a := &Authority{o: o, turn: semaphore.NewWeighted(1), changed: make(chan struct{})}
	if err := a.reload(ctx); err != nil {
		unusable := errors.Is(err, ErrUnusable)
		if _, able := a.state.current(o.Now()); !able && !unusable && (!o.Late || len(a.state.generations) > 0) {
			return nil, fmt.Errorf("opening the certificate authority: %w", err)
		}
		if unusable {
			o.Logger.Error("the certificate authority cannot be used as it is stored", slog.Any("err", err))
		} else {
			o.Logger.Warn("the certificate authority goes on as it was stored", slog.Any("err", err))
		}
	}
	return a, nil
}

// TrustDomain is that of all who get certificates.
func (a *Authority) TrustDomain() string { return a.o.TrustDomain }

// Policy is how signers take turns.
func (a *Authority) Policy() Policy { return a.o.Policy }

// Run follows store and source until the context ends and then returns nil.
func (a *Authority) Run(ctx context.Context) error {
	timer := time.NewTimer(a.pause())
	defer timer.Stop()
	warned := ""
	for {
		timer.Reset(a.pause())
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		err := a.reload(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if text := fmt.Sprint(err); err != nil && text != warned {
			a.o.Logger.Warn("the certificate authority could not be reloaded; current signers stay in use", slog.Any("err", err))
		}
		warned = fmt.Sprint(err)
	}
}

// pause is how long until the next look: not long while there is no signer.
func (a *Authority) pause() time.Duration {
	if _, able := a.now().current(a.o.Now()); !able {
		return min(time.Second, a.o.Poll)
	}
	return a.o.Poll
}

// ErrFromOutside is the error of Rotate where signers come from a source.
var ErrFromOutside = errors.New("the signer comes from outside; put the new one there, and the hub follows")

// ErrRotating is the error of Rotate while a signer waits for its turn.
var ErrRotating = errors.New("a new root waits for its turn already")

// Rotate makes a further root, which signs after the overlap. It fails with a
// source, which is to be changed instead; while a new root waits for its turn; and,
// unless forced, where a key cannot be used that may be opened again (ErrUnusable).
// With none that signs, the new root does at once.
func (a *Authority) Rotate(ctx context.Context, force bool) error {
	if a.o.Source != nil {
		return ErrFromOutside
	}
	rotated := false
	err := a.step(ctx, func(s state, now time.Time) (state, error) {
		rotated = false
		last, some := s.newest()
		switch broken := s.broken(); {
		case broken != nil && !force:
			return s, broken
		case broken == nil && some && last.signs.After(now):
			return s, fmt.Errorf("%w, from %s on", ErrRotating, last.signs.UTC().Format(time.RFC3339))
		}
		next, err := a.withRoot(s, now)
		rotated = err == nil
		return next, err
	})
	if rotated && err == nil {
		a.mu.Lock()
		a.trouble = a.state.broken()
		a.mu.Unlock()
		a.o.Logger.Info("a new root was made", slog.String("trustDomain", a.o.TrustDomain), slog.Bool("forced", force))
	}
	return err
}

// reload reads what is stored and does what is due.
func (a *Authority) reload(ctx context.Context) error {
	err := a.step(ctx, func(s state, now time.Time) (state, error) {
		if a.o.Source != nil {
			return a.fromSource(ctx, s, now)
		}
		if s.due(now) {
			return a.withRoot(s, now)
		}
		return s, nil
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil {
		err = a.state.broken()
	}
	a.trouble = err
	return err
}

func (a *Authority) withRoot(s state, now time.Time) (state, error) {
	g, err := newRoot(a.o.TrustDomain, now, a.o.Policy.Root)
	if err != nil {
		return s, err
	}
	return s.add(g, now, a.o.Policy), nil
}

func (a *Authority) fromSource(ctx context.Context, s state, now time.Time) (state, error) {
	files, err := a.o.Source.Read(ctx)
	if err != nil {
		return s, err
	}
	g, err := files.read(now)
	if err != nil {
		return s, err
	}
	if last, some := s.newest(); some && last.signer().Equal(g.signer()) && sameCertificates(last.roots, g.roots) &&
		sameCertificates(last.chain, g.chain) {
		return s, nil
	}
	return s.add(g, now, a.o.Policy), nil
}

func sameCertificates(a, b []*x509.Certificate) bool {
	if len(a) != len(b) {
		return false
	}
	for _, c := range a {
		if !contains(b, c) {
			return false
		}
	}
	return true
}

// takeTurn waits for the changes before this one, until the context ends. A turn that is free is for callers without time, too:
// what they do says what is wrong.
func (a *Authority) takeTurn(ctx context.Context) error {
	if a.turn.TryAcquire(1) {
		return nil
	}
	if a.turn.Acquire(ctx, 1) != nil {
		return fmt.Errorf("waiting for another change of the certificate authority: %w", context.Cause(ctx))
	}
	return nil
}

// attempts bounds how often a change is tried that others came before.
const attempts = 5

// step changes the stored state, together with whatever other replicas did. What
// is stored counts even where the change fails.
func (a *Authority) step(ctx context.Context, change func(state, time.Time) (state, error)) error {
	if err := a.takeTurn(ctx); err != nil {
		return err
	}
	defer a.turn.Release(1)
	for range attempts {
		s, revision, err := a.load(ctx)
		if err != nil {
			return err
		}
		now := a.o.Now()
		next, failed := change(s, now)
		next, changed := next.dropExpired(now, a.o.Policy)
		if !changed && len(next.generations) == len(s.generations) && !a.stale(s) {
			a.take(s, revision)
			return failed
		}
		stored, err := next.encode(a.o.TrustDomain, a.o.Keys)
		if err != nil {
			return err
		}
		saved, err := a.o.Store.Save(ctx, stored, revision)
		if err != nil {
			return fmt.Errorf("storing the certificate authority: %w", err)
		}
		if saved {
			s, revision, err = a.load(ctx)
			if err == nil {
				a.take(s, revision)
			}
			return errors.Join(failed, err)
		}
	}
	return errors.New("storing the certificate authority: other replicas kept changing it; the hub retries")
}

func (a *Authority) stale(s state) bool {
	return a.o.Stale != nil && slices.ContainsFunc(s.generations,
		func(g generation) bool { return len(g.sealed) > 0 && g.broken == nil && a.o.Stale(g.sealed) })
}

func (a *Authority) load(ctx context.Context) (state, int64, error) {
	stored, revision, err := a.o.Store.Load(ctx)
	if err != nil {
		return state{}, 0, fmt.Errorf("reading the stored certificate authority: %w", err)
	}
	if revision == 0 {
		return state{}, 0, nil
	}
	a.mu.Lock()
	known, at := a.state, a.revision
	a.mu.Unlock()
	if at == revision && known.broken() == nil {
		return known, at, nil
	}
	s, err := decode(stored, a.o.TrustDomain, a.o.Keys)
	return s, revision, err
}

// take makes the state the one in use.
func (a *Authority) take(s state, revision int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if revision == a.revision && a.state.broken() == nil {
		return
	}
	first, others := a.revision == 0, !sameCertificates(a.state.roots(), s.roots())
	a.state, a.revision = s, revision
	if others {
		close(a.changed)
		a.changed = make(chan struct{})
	}
	if others && !first {
		a.o.Logger.Info("trust bundle changed", slog.String("trustDomain", a.o.TrustDomain), slog.Int("roots", len(s.roots())))
	}
}

func (a *Authority) now() state {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state
}

// ErrNoSigner is the error of Sign while there is no signer.
var ErrNoSigner = errors.New("no signer is usable now; look at the hub's log and at its clock")

// Sign signs the certificate of an order for the authority's own trust domain.
func (a *Authority) Sign(o Order) (Leaf, error) {
	if o.Workload.TrustDomain != a.o.TrustDomain {
		return Leaf{}, fmt.Errorf("signing the certificate of %s: the trust domain here is %s", o.Workload, a.o.TrustDomain)
	}
	now := a.o.Now()
	g, err := a.signer(now)
	if err != nil {
		return Leaf{}, err
	}
	return g.sign(o, now, a.o.Policy)
}

func (a *Authority) signer(now time.Time) (generation, error) {
	g, able := a.now().current(now)
	if able {
		return g, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.trouble != nil {
		return g, fmt.Errorf("%w: %w", ErrNoSigner, a.trouble)
	}
	return g, ErrNoSigner
}

// Roots are those that are trusted for the authority's trust domain.
func (a *Authority) Roots() []*x509.Certificate { return a.now().roots() }

// Changed is closed when the roots change after the call.
func (a *Authority) Changed() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.changed
}
