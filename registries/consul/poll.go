package consul

import (
	"context"
	"errors"
	"sync"
	"time"

	"isthmus.dev/isthmus/internal/retry"
)

const (
	beatEvery  = 4 * time.Second
	hotGap     = time.Second // between two answers without a difference (F59, F62)
	longestGap = 4 * time.Second
	busyGap    = 100 * time.Millisecond // between two answers with one (F64)
	sweepGap   = 5 * time.Millisecond
)

// pace keeps a poller from asking more than once a second while the answers
// hold nothing new, whatever the index does, and ten times a second while they do.
type pace struct {
	hot   int
	asked time.Time
}

func (p *pace) ask() { p.asked = time.Now() }

// wait returns how long to wait before the next question.
func (p *pace) wait(changed bool) time.Duration {
	took := time.Since(p.asked)
	if changed || took > longestGap {
		p.hot = 0
		return max(0, busyGap-took)
	}
	gap := min(hotGap<<min(p.hot/4, 2), longestGap)
	p.hot++
	return max(0, gap-took)
}

// poll follows one service until its context ends. An answer that lacks an
// instance is read again from the servers themselves before it is sent.
func (p *pollers) poll(ctx context.Context, name string, last reading) {
	var speed pace
	troubled := false
	for ctx.Err() == nil {
		speed.ask()
		index := last.index
		o, a, err := p.r.read(ctx, p.translate, name, index)
		direct := !a.streamed
		shrinks := err == nil && last.translation != nil && last.translation.shrinks(o)
		if shrinks && !direct {
			retry.Sleep(ctx, busyGap-time.Since(speed.asked))
			var confirmed answer
			o, confirmed, err = p.r.read(ctx, p.translate, name, 0)
			a.index, direct = min(a.index, confirmed.index), true
		}
		if err != nil {
			if !p.complain(ctx, name, err) {
				return
			}
			troubled = true
			retry.Sleep(ctx, p.failures.pause(name, err))
			continue
		}
		p.failures.end(name)
		if (shrinks || a.streamed == last.streamed) && p.wentBack(ctx, index, a.index) {
			return
		}
		changed := troubled || last.translation == nil || !last.translation.equal(o)
		troubled = false
		last = reading{index: a.index, translation: o, streamed: a.streamed}
		if changed && !send(ctx, p.news, serviceUpdate{name: name, translation: o, direct: direct}) {
			return
		}
		retry.Sleep(ctx, speed.wait(changed))
	}
}

// wentBack asks for a re-list when an index goes back (F58), which starts all
// pollers again; the answer is not used. Indexes of an agent's own view and of its servers
// are compared only where an instance is missing.
func (p *pollers) wentBack(ctx context.Context, before, now uint64) bool {
	return now != 0 && now < before && send(ctx, p.reset, struct{}{})
}

// complain sorts an error: what ends the run, what is a service's own
// problem, and what the next proof explains. It reports whether to go on.
func (p *pollers) complain(ctx context.Context, name string, err error) bool {
	var r *refusal
	var odd *unreadable
	if ctx.Err() != nil {
		return false
	}
	p.r.log.Debug("a read failed", "name", name, "err", err)
	switch {
	case affectsDatacenter(err), name == listed && errors.As(err, &r):
		send(ctx, p.trouble, err)
		return false
	case name != listed && errors.As(err, &odd):
		return send(ctx, p.news, serviceUpdate{name: name, odd: odd})
	case p.failures.isReported(name):
		return true
	case errors.As(err, &r):
		return p.refused(ctx, name, err)
	case isBusy(err) && p.failures.rateLimited(name):
		send(ctx, p.rateLimited, struct{}{})
	default:
		p.doubt()
	}
	switch {
	case !p.failures.last(name, err):
		return true
	case name == listed:
		send(ctx, p.trouble, err)
		return false
	}
	return send(ctx, p.news, serviceUpdate{name: name, odd: unreadableService(err)})
}

// refused asks Consul at once whether it refuses everything, as it does without the token,
// or this service alone.
func (p *pollers) refused(ctx context.Context, name string, err error) bool {
	trouble := p.guard.proveSince(ctx, time.Now())
	var r *refusal
	switch {
	case trouble == nil:
		p.failures.report(name)
		return send(ctx, p.news, serviceUpdate{name: name, odd: unreadableService(err)})
	case errors.As(trouble, &r):
		send(ctx, p.trouble, trouble)
		return false
	}
	p.doubt()
	return true
}

// doubt has the source proven at once.
func (p *pollers) doubt() {
	p.nudge.Notify()
}

// pollList follows the names of the services.
func (p *pollers) pollList(ctx context.Context, index uint64) {
	var speed pace
	var last *listing // nil: nothing was sent yet
	for ctx.Err() == nil {
		speed.ask()
		names, a, err := p.r.list(ctx, index)
		if err != nil {
			if !p.complain(ctx, listed, err) {
				return
			}
			retry.Sleep(ctx, p.failures.pause(listed, err))
			continue
		}
		p.failures.end(listed)
		if p.wentBack(ctx, index, a.index) {
			return
		}
		index = a.index
		p.guard.sawIndex(servicesPath, index)
		if last == nil || !names.equal(*last) {
			speed.hot = 0
			if !send(ctx, p.lists, names) {
				return
			}
			last = &names
		}
		retry.Sleep(ctx, speed.wait(false))
	}
}

// beat proves the source again and again, so that a link that is dead, frozen or
// without rights is seen soon, and so is a Consul that was restored from a snapshot.
// Two proofs must fail before a passing trouble counts.
func (p *pollers) beat(ctx context.Context) {
	for n := 1; ; n++ {
		t := time.NewTimer(beatEvery)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-p.nudge:
			t.Stop()
		case <-t.C:
		}
		err := p.guard.prove(ctx, n%8 == 0)
		if err == nil {
			err = p.guard.compareServers(ctx)
		}
		for tries := 1; again(err, tries) && retry.Sleep(ctx, time.Second); tries++ {
			if isBusy(err) {
				send(ctx, p.rateLimited, struct{}{})
			}
			err = p.guard.prove(ctx, false)
		}
		if err != nil && ctx.Err() == nil {
			send(ctx, p.trouble, err)
			return
		}
	}
}

// again reports whether a proof that failed is tried once more: after a passing
// trouble, and a few times more while Consul makes room for it.
func again(err error, tries int) bool {
	var r *refusal
	if err == nil || errors.As(err, &r) || errors.Is(err, errRelist) {
		return false
	}
	return tries < 2 || isBusy(err) && tries < 6
}

// roundRobin is the list of services that are read in turn.
type roundRobin struct {
	mu      sync.Mutex
	names   []string
	next    int
	reading map[string]bool
}

func (r *roundRobin) set(names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.names = names
}

// begin reports whether the service may be read now: no other read of it is under way.
func (r *roundRobin) begin(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reading[name] {
		return false
	}
	if r.reading == nil {
		r.reading = map[string]bool{}
	}
	r.reading[name] = true
	return true
}

func (r *roundRobin) end(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.reading, name)
}

// turn is the next service and how many there are.
func (r *roundRobin) turn() (string, int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.names) == 0 {
		return "", 0
	}
	r.next = (r.next + 1) % len(r.names)
	return r.names[r.next], len(r.names)
}

// sweep reads the services without a long poll, all of them once in SweepEvery. A
// service whose answer is slow does not hold up the others.
func (p *pollers) sweep(ctx context.Context) {
	due := time.Now()
	places := make(chan struct{}, sweepers)
	for ctx.Err() == nil {
		name, n := p.turns.turn()
		if n == 0 {
			retry.Sleep(ctx, hotGap)
			due = time.Now()
			continue
		}
		if !p.failures.waits(name) && p.turns.begin(name) {
			if !send(ctx, places, struct{}{}) {
				return
			}
			p.spawn(ctx, func() {
				defer func() { p.turns.end(name); <-places }()
				p.readInTurn(ctx, name)
			})
		}
		// A slow answer is made up for, so that the round keeps its length.
		due = due.Add(max(p.r.o.SweepEvery*9/10/time.Duration(n), sweepGap))
		if late := time.Since(due); late > p.r.o.SweepEvery {
			due = time.Now()
		}
		retry.Sleep(ctx, time.Until(due))
	}
}

// readInTurn reads one service of the sweep.
func (p *pollers) readInTurn(ctx context.Context, name string) {
	o, _, err := p.r.read(ctx, p.translate, name, 0)
	if err == nil {
		p.failures.end(name)
		send(ctx, p.news, serviceUpdate{name: name, translation: o, direct: true})
		return
	}
	p.failures.pause(name, err)
	if p.complain(ctx, name, err) && isBusy(err) {
		retry.Sleep(ctx, hotGap)
	}
}

// send reports whether the value was taken before the context ended.
func send[T any](ctx context.Context, to chan<- T, v T) bool {
	select {
	case to <- v:
		return true
	case <-ctx.Done():
		return false
	}
}
