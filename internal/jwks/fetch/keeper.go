// Package fetch fetches the keys by which tokens are verified, and keeps the last good ones.
package fetch

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/derive"
	"isthmus.dev/isthmus/internal/jwks"
	"isthmus.dev/isthmus/internal/recordfile"
	"isthmus.dev/isthmus/internal/retry"
)

const (
	every        = 20 * time.Minute // after a success
	firstPause   = 5 * time.Second  // after a failure
	longestPause = 5 * time.Minute
	// atOnce is how many fetches run. It is more than one namespace can have, so that a namespace
	// whose servers do not answer holds up no other.
	atOnce = 2*mostOfNamespace + 50
)

// Snapshots has the latest snapshot.
type Snapshots interface {
	Latest() *federation.Snapshot
}

// Sink takes sets of keys.
type Sink interface {
	Update(federation.Edit)
}

// Metrics counts fetches, and the sources by state. A nil one counts nothing.
type Metrics interface {
	Fetched(ok bool)
	Sources(fresh, stale, missing int)
}

// Options of a Keeper. Snapshots and To are needed.
type Options struct {
	Snapshots Snapshots
	To        Sink
	Metrics   Metrics
	Logger    *slog.Logger  // nil: nothing is logged
	Every     time.Duration // how often keys are fetched; 0: every 20 min
	Dir       string        // the folder for the last good keys; empty: they are not kept on disk
	// Fetch gets the usable keys of a source as a set. Nil: over HTTP, from addresses that the
	// snapshot's policy allows.
	Fetch func(ctx context.Context, from federation.KeySource, timeout time.Duration) (string, error)
}

// Keeper fetches the keys that RequestAuthentications of the latest snapshot name, each URI once for all
// objects, again and again. The last good keys stay while a server fails.
type Keeper struct {
	options Options
	wanted  *derive.Table[struct{}, *demand]
	slots   chan struct{}
	kept    *kept

	mu       sync.Mutex
	followed map[federation.KeySource]*followed
	gone     map[federation.KeySource]string // refused, and why
}

// followed is what the Keeper knows of a source.
type followed struct {
	set     federation.KeySet
	old     bool // the keys are from the disk
	timeout time.Duration
	end     context.CancelFunc
}

// New makes a Keeper; Run has it work.
func New(o Options) *Keeper {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = uncounted{}
	}
	if o.Fetch == nil {
		o.Fetch = client{policy: func() federation.AddressPolicy { return o.Snapshots.Latest().Settings().Addresses }}.keys
	}
	o.Every = cmp.Or(o.Every, every)
	return &Keeper{
		options: o, wanted: demands(), slots: make(chan struct{}, atOnce), kept: newKept(o.Dir, o.Logger),
		followed: map[federation.KeySource]*followed{},
	}
}

type uncounted struct{}

func (uncounted) Fetched(bool)          {}
func (uncounted) Sources(int, int, int) {}

// Run fetches until the context ends.
func (k *Keeper) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { recordfile.Save(ctx, k.kept.wake, k.kept.save, k.kept.failed) })
	var before *demand
	for ctx.Err() == nil {
		s := k.options.Snapshots.Latest()
		if now := k.wanted.Get(s, struct{}{}); now != before {
			k.adopt(ctx, &running, now)
			before = now
		}
		select {
		case <-ctx.Done():
		case <-s.Superseded():
		}
	}
	return nil
}

// adopt starts to follow sources that are needed now, and ends with those that are not.
func (k *Keeper) adopt(ctx context.Context, running *sync.WaitGroup, now *demand) {
	k.mu.Lock()
	defer k.mu.Unlock()
	edit := federation.Edit{}
	edit.KeySets.Set = map[federation.KeySource]federation.KeySet{}
	for from, f := range k.followed {
		if _, stays := now.fetched[from]; !stays {
			f.end()
			delete(k.followed, from)
			k.kept.drop(from)
			edit.KeySets.Gone = append(edit.KeySets.Gone, from)
		}
	}
	for from := range k.gone {
		if _, stays := now.refused[from]; !stays {
			edit.KeySets.Gone = append(edit.KeySets.Gone, from)
		}
	}
	for from, why := range now.refused {
		edit.KeySets.Set[from] = federation.KeySet{Problem: why}
	}
	k.gone = now.refused
	for from, timeout := range now.fetched {
		if f := k.followed[from]; f != nil {
			f.timeout = timeout
			continue
		}
		of, end := context.WithCancel(ctx)
		k.followed[from] = &followed{timeout: timeout, end: end}
		running.Go(func() { k.follow(of, from) })
	}
	k.publish(edit)
}

// follow fetches from one source until the context ends.
func (k *Keeper) follow(ctx context.Context, from federation.KeySource) {
	pauses := retry.Backoff{First: min(firstPause, k.options.Every), Longest: min(longestPause, k.options.Every)}
	for {
		keys, err := k.fetch(ctx, from)
		if !k.take(ctx, from, keys, err) {
			return
		}
		pause := k.options.Every
		if err != nil {
			pause = pauses.Next()
		} else {
			pauses.Reset()
		}
		if !retry.Sleep(ctx, pause) {
			return
		}
	}
}

func (k *Keeper) fetch(ctx context.Context, from federation.KeySource) (string, error) {
	select {
	case k.slots <- struct{}{}:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	defer func() { <-k.slots }()
	k.mu.Lock()
	timeout := time.Duration(0)
	if f := k.followed[from]; f != nil {
		timeout = f.timeout
	}
	k.mu.Unlock()
	return k.options.Fetch(ctx, from, timeout)
}

// take publishes the result of a try. It returns false if the source is not needed any more.
func (k *Keeper) take(ctx context.Context, from federation.KeySource, keys string, err error) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if ctx.Err() != nil {
		return false
	}
	f := k.followed[from]
	before := f.set
	if err != nil {
		k.fail(f, from, err)
	} else {
		f.set, f.old = federation.KeySet{Keys: keys}, false
		k.kept.put(from, keys)
	}
	k.options.Metrics.Fetched(err == nil)
	k.log(from, before, f.set)
	edit := federation.Edit{}
	edit.KeySets.Set = map[federation.KeySource]federation.KeySet{from: f.set}
	k.publish(edit)
	return true
}

// fail notes that a try failed. The keys on disk are for issuers that are away: one that says that it has no keys has revoked
// them, and a URI that the policy refuses is not used at all (ADR 246).
func (k *Keeper) fail(f *followed, from federation.KeySource, err error) {
	f.set.Problem = cause(err)
	revoked := errors.As(err, new(jwks.NoKeys))
	switch {
	case revoked:
		k.kept.drop(from)
		if f.old {
			f.set.Keys, f.old = "", false
		}
	case f.set.Keys == "" && !errors.As(err, new(refusal)):
		f.set.Keys = k.kept.of(from)
		f.old = f.set.Keys != ""
	}
}

// log tells of what is new: keys, a failure, and its end.
func (k *Keeper) log(from federation.KeySource, before, now federation.KeySet) {
	uri := jwks.Display(from.URI)
	switch {
	case now.Problem != "" && before.Problem == "":
		k.options.Logger.Warn("fetching keys of tokens failed; the last good ones stay", "uri", uri, "err", now.Problem, "kept", now.Keys != "")
	case now.Problem == "" && now.Keys != before.Keys:
		k.options.Logger.Info("keys of tokens changed", "uri", uri, "new", before.Keys == "")
	case now.Problem == "" && before.Problem != "":
		k.options.Logger.Info("keys of tokens can be fetched again", "uri", uri)
	}
}

// publish hands the edit on, and counts.
func (k *Keeper) publish(edit federation.Edit) {
	if len(edit.KeySets.Set) > 0 || len(edit.KeySets.Gone) > 0 {
		k.options.To.Update(edit)
	}
	var fresh, stale int
	missing := len(k.gone)
	for _, f := range k.followed {
		switch {
		case f.set.Keys == "":
			missing++
		case f.set.Problem != "":
			stale++
		default:
			fresh++
		}
	}
	k.options.Metrics.Sources(fresh, stale, missing)
}
