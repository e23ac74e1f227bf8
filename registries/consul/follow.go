package consul

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/wake"
)

// errRelist ends a run of the syncer that must read everything again.
var errRelist = errors.New("the catalogue must be read again as a whole")

const (
	relistAtMost = 5 * time.Second // between two re-lists that a Consul's index asks for
	sweepers     = 4               // services without a long poll that are read at once
	reserved     = 2 + sweepers    // requests beside the services' long polls: list, proof, sweep
	raiseEvery   = time.Minute     // after a 429
)

// serviceUpdate is what a poller found out about one service.
type serviceUpdate struct {
	name        string
	translation *translation // nil where odd says why
	direct      bool         // the answer's headers tell whether rights hid anything
	odd         *unreadable
}

// pollers ask Consul, each in a goroutine of its own, and send what they find out.
type pollers struct {
	r           *Registry
	guard       *guard
	translate   *translator
	news        chan serviceUpdate
	lists       chan listing
	trouble     chan error    // ends the run
	reset       chan struct{} // an index went back
	rateLimited chan struct{} // a 429
	nudge       wake.Signal   // an error that the next proof should explain at once
	turns       roundRobin
	wg          sync.WaitGroup
	failures    failures
}

// watch is what the goroutine of follow derives from the pollers' messages.
type watch struct {
	*syncer
	pollers *pollers
	live    map[string]context.CancelFunc
	rest    int // services without a long poll
	lowered time.Time
}

// follow keeps the model current until something ends the run: errRelist,
// or the trouble that the caller has to say. No goroutine is left behind.
func (s *syncer) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	p := &pollers{
		r: s.r, guard: s.guard, translate: s.translate, news: make(chan serviceUpdate), lists: make(chan listing), trouble: make(chan error),
		reset: make(chan struct{}), rateLimited: make(chan struct{}), nudge: wake.New(),
	}
	defer p.wg.Wait()
	defer cancel()
	p.spawn(ctx, func() { p.beat(ctx) })
	p.spawn(ctx, func() { p.pollList(ctx, s.listIndex) })
	p.spawn(ctx, func() { p.sweep(ctx) })
	w := &watch{syncer: s, pollers: p, live: map[string]context.CancelFunc{}}
	w.arrange(ctx)
	return w.loop(ctx)
}

func (w *watch) loop(ctx context.Context) error {
	relist := time.NewTimer(0)
	relist.Stop()
	defer relist.Stop()
	asked := false
	raise := time.NewTicker(raiseEvery)
	defer raise.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err = <-w.pollers.trouble:
		case <-relist.C:
			err = errRelist
		case <-w.pollers.reset:
			if !asked {
				asked = true
				relist.Reset(max(0, relistAtMost-time.Since(w.relisted)))
			}
		case <-w.pollers.rateLimited:
			w.lower(ctx)
		case <-raise.C:
			w.raise(ctx)
		case n := <-w.pollers.news:
			err = w.apply(ctx, w.gather(n))
		case names := <-w.pollers.lists:
			err = w.applyList(ctx, names)
		}
		if err != nil {
			return err
		}
	}
}

// gather adds what is waiting already, so that a burst becomes one edit.
func (w *watch) gather(first serviceUpdate) []serviceUpdate {
	batch := []serviceUpdate{first}
	for {
		select {
		case n := <-w.pollers.news:
			batch = append(batch, n)
		default:
			return batch
		}
	}
}

// apply says what the answers change. What takes something away waits for a
// proof of the source and the token; without it nothing of the batch is used.
func (w *watch) apply(ctx context.Context, batch []serviceUpdate) error {
	latest := map[string]*translation{}
	shrinks := false
	for _, n := range batch {
		known := w.model.translations[n.name]
		if _, followed := w.services[n.name]; !followed {
			continue
		}
		if n.odd != nil {
			n.translation = w.spoilt(n.name, n.odd)
		}
		if known != nil && known.shrinks(n.translation) {
			if !n.direct {
				return errRelist
			}
			shrinks = true
		}
		latest[n.name] = n.translation
	}
	if err := w.fits(latest); err != nil {
		return err
	}
	if shrinks {
		if err := w.guard.prove(ctx, true); err != nil {
			return err
		}
	}
	w.publish(latest, nil)
	w.reportProblems()
	return nil
}

// publish changes the model and sends the difference as one edit, if there is any.
func (w *watch) publish(set map[string]*translation, gone []string) {
	names, keys := slices.Concat(slices.Collect(maps.Keys(set)), gone), make([]federation.ServiceKey, 0, len(set))
	for _, o := range set {
		keys = append(keys, o.key)
	}
	scope, full := w.model.scope(names, keys), w.model.ends(set, gone)
	for name, o := range set {
		w.model.set(name, o)
	}
	for _, name := range gone {
		w.model.remove(name)
	}
	e, differs := scope.edit()
	if full {
		e, differs = w.model.full(), true
	}
	id := w.guard.identity()
	if id.String() != w.proven.String() { // servers were replaced one by one
		w.proven, e.Identity, differs = id, id.edit(), true
	}
	if differs {
		w.update(e)
	}
	w.r.client.budget.keep(w.model.used)
}

// applyList starts to follow what is new and drops what is gone. A list that
// drops more than half of at least 20 services is read again as a whole, so
// that the hub can judge it as one.
func (w *watch) applyList(ctx context.Context, names listing) error {
	usable, translations := w.sort(names)
	w.r.lastSync.Store(time.Now().UnixNano())
	now := map[string]bool{}
	for _, name := range usable {
		now[name] = true
	}
	var gone []string
	for name := range w.model.translations {
		if !now[name] && translations[name] == nil {
			gone = append(gone, name)
		}
	}
	if len(w.model.translations) >= 20 && len(gone) > len(w.model.translations)/2 {
		return errRelist
	}
	if len(gone) > 0 {
		if err := w.guard.prove(ctx, true); err != nil {
			return err
		}
	}
	for name := range w.services {
		if !now[name] {
			w.drop(name)
		}
	}
	for _, name := range usable {
		if _, known := w.services[name]; !known {
			w.services[name] = reading{}
		}
	}
	w.publish(translations, gone)
	w.arrange(ctx)
	return nil
}

func (w *watch) drop(name string) {
	if stop := w.live[name]; stop != nil {
		stop()
		delete(w.live, name)
	}
	delete(w.services, name)
	w.pollers.failures.end(name)
}

// capacity is how many services may have a long poll.
func (w *watch) capacity() int {
	if w.guard.multiplexed() {
		return maxStreams
	}
	return max(w.polls-reserved, 1)
}

// arrange gives services long polls while there is room, by name, and leaves
// the rest to the sweep; the status says how many these are.
func (w *watch) arrange(ctx context.Context) {
	names, room := slices.Sorted(maps.Keys(w.services)), w.capacity()
	for i := len(names) - 1; i >= 0 && len(w.live) > room; i-- {
		if stop := w.live[names[i]]; stop != nil {
			stop()
			delete(w.live, names[i])
		}
	}
	var rest []string
	for _, name := range names {
		if w.live[name] != nil {
			continue
		}
		if len(w.live) >= room {
			rest = append(rest, name)
			continue
		}
		w.start(ctx, name)
	}
	w.pollers.turns.set(rest)
	w.rest = len(rest)
	w.reportProblems()
}

// start gives the service a long poll. It goes on from the reading of the sync
// unless the sweep or an earlier poll has said something since.
func (w *watch) start(ctx context.Context, name string) {
	ctx, stop := context.WithCancel(ctx)
	w.live[name] = stop
	from := w.services[name]
	if from.translation != w.model.translations[name] {
		from = reading{}
	}
	w.pollers.spawn(ctx, func() { w.pollers.poll(ctx, name, from) })
}

// lower halves the long polls after a 429, at most once in 5 s.
func (w *watch) lower(ctx context.Context) {
	if time.Since(w.lowered) < 5*time.Second {
		return
	}
	w.lowered = time.Now()
	w.polls = max((len(w.live)+reserved)/2, minPolls)
	w.arrange(ctx)
}

func (w *watch) raise(ctx context.Context) {
	if w.polls < w.r.o.MaxPolls && time.Since(w.lowered) > raiseEvery {
		w.polls = min(w.polls+w.polls/4, w.r.o.MaxPolls)
		w.arrange(ctx)
	}
}
