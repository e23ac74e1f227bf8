package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientset "k8s.io/client-go/kubernetes"

	"isthmus.dev/isthmus/federation"
)

// errAsked ends a session because everything is to be listed again.
var errAsked = errors.New("everything is listed again")

// foreignError says that another cluster answers at the address.
type foreignError struct{ want, have string }

func (e foreignError) Error() string {
	return fmt.Sprintf("another cluster answers at this address: its kube-system has the UID %s and not %s; nothing of it is used; correct the address or confirm the new cluster", federation.Quote(e.have), federation.Quote(e.want))
}

// gate lets nobody speak to a server that did not prove itself. Its probe reads
// the namespace kube-system every few seconds, from a quorum: a frozen server,
// a half-open link, another cluster (F47) and a history that went back (F45)
// show there, whatever the watches say.
type gate struct {
	client clientset.Interface
	every  time.Duration
	wake   chan struct{}

	mu      sync.Mutex
	uid     string // of kube-system; empty until the first proof
	trouble error  // why the gate is closed; nil is open
	steady  steadiness
	epoch   uint64        // of the server's history; everything is listed once in each
	highest uint64        // version seen last
	started uint64        // rounds of the probe
	proved  uint64        // the last round that was good
	lost    chan struct{} // closed when the present session ends
	changed chan struct{} // closed by every round's end
}

// session is leave to speak to the server until lost is closed.
type session struct {
	lost  <-chan struct{}
	epoch uint64
}

func newGate(client clientset.Interface, uid string, every time.Duration) *gate {
	return &gate{
		client: client, every: every, uid: uid, epoch: 1, wake: make(chan struct{}, 1),
		trouble: errors.New("not connected yet"), lost: make(chan struct{}), changed: make(chan struct{}),
	}
}

// run probes until the context ends and reports the end of every round.
func (g *gate) run(ctx context.Context, report func(uid string, trouble error)) {
	for ctx.Err() == nil {
		g.begin()
		round := g.probe(ctx)
		if ctx.Err() != nil {
			return
		}
		report(g.end(round))
		pause := time.NewTimer(g.pause())
		select {
		case <-ctx.Done():
		case <-g.wake:
		case <-pause.C:
		}
		pause.Stop()
	}
}

// pause is 10 % around the interval, so that many hubs do not probe at once;
// while the gate is closed it is shorter.
func (g *gate) pause() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	pause := g.every
	if g.trouble != nil {
		pause /= 3
	}
	return pause*9/10 + rand.N(pause/5+1)
}

// round is what a probe found.
type round struct {
	uid     string
	version uint64 // of the server's objects
	server  string // version of the server itself; empty: it does not say
	err     error
}

func (g *gate) probe(ctx context.Context) (found round) {
	ctx, cancel := context.WithTimeout(ctx, g.every)
	defer cancel()
	list, err := g.client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{FieldSelector: only(system), Limit: 1})
	switch {
	case err != nil:
		return round{err: accessError{verb: "list", resource: "namespaces", err: err}}
	case len(list.Items) == 0 || list.Items[0].Name != system || list.Items[0].UID == "":
		return round{err: errors.New("the server answers and does not show the namespace kube-system, by which a cluster is known")}
	}
	found.version, _ = strconv.ParseUint(list.ResourceVersion, 10, 64)
	found.uid = string(list.Items[0].UID)
	found.server, found.err = g.version(ctx)
	return found
}

func (g *gate) begin() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.started++
}

// end judges a round.
func (g *gate) end(found round) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	err := g.judge(found)
	switch {
	case err != nil && overloaded(err) && g.trouble == nil:
		// The server lives and asks for patience; what is open stays open.
	case err != nil:
		if g.trouble == nil {
			close(g.lost)
		}
		g.trouble = err
	default:
		if g.trouble != nil {
			g.lost = make(chan struct{})
		}
		g.uid, g.trouble = found.uid, nil
		if found.version < g.highest {
			g.nextEpoch()
		}
		g.highest = found.version
	}
	if err == nil {
		g.proved = g.started
	}
	close(g.changed)
	g.changed = make(chan struct{})
	return g.uid, err
}

// judge says what is wrong with the round. The caller holds the lock.
func (g *gate) judge(found round) error {
	switch {
	case found.err != nil && lasting(g.trouble):
		return g.trouble
	case found.err != nil:
		return found.err
	case g.uid != "" && g.uid != found.uid:
		return foreignError{want: g.uid, have: found.uid}
	}
	err := g.steady.hear(found.server)
	if said := (unsteadyError{}); err != nil && errors.As(g.trouble, &said) {
		return said
	}
	return err
}

// nextEpoch makes everyone list everything again. The caller holds the lock.
func (g *gate) nextEpoch() {
	g.epoch++
	if g.trouble == nil {
		close(g.lost)
		g.lost = make(chan struct{})
	}
}

// relist makes everyone list everything again.
func (g *gate) relist() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.nextEpoch()
}

// enter blocks until the gate is open or the context ends.
func (g *gate) enter(ctx context.Context) (session, error) {
	for {
		g.mu.Lock()
		open, s, changed := g.trouble == nil, session{lost: g.lost, epoch: g.epoch}, g.changed
		g.mu.Unlock()
		if open {
			return s, nil
		}
		select {
		case <-ctx.Done():
			return session{}, ctx.Err()
		case <-changed:
		}
	}
}

// Enter is for others that read the cluster: it blocks until the cluster has proven
// itself. What is read from then on counts if prove, called after the reading,
// returns nil; what lasts, such as a watch, ends when lost is closed.
func (r *Registry) Enter(ctx context.Context) (lost <-chan struct{}, prove func(context.Context) error, err error) {
	s, err := r.gate.enter(ctx)
	if err != nil {
		return nil, nil, err
	}
	return s.lost, func(ctx context.Context) error { return r.gate.prove(ctx, s) }, nil
}

// ask makes the next round of the probe begin without delay.
func (g *gate) ask() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// prove blocks until a probe that began after the call has ended, and returns
// nil if the session still lives: what was read before the call came from the
// known cluster.
func (g *gate) prove(ctx context.Context, s session) error {
	g.mu.Lock()
	need := g.started + 1
	g.mu.Unlock()
	g.ask()
	for {
		g.mu.Lock()
		done, changed := g.proved >= need, g.changed
		g.mu.Unlock()
		select {
		case <-s.lost:
			return errAsked
		default:
		}
		if done {
			return ctx.Err()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.lost:
		case <-changed:
		}
	}
}
