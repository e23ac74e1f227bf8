// Package listwatch reads a Kubernetes cluster: it lists a resource, and watches it from
// there on, as long as the cluster proves that it is the known one. Whatever follows
// objects of a cluster does it through this package.
package listwatch

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"

	"isthmus.dev/isthmus/internal/kube/clients"
	"isthmus.dev/isthmus/internal/wake"
)

// ClusterOptions say what is known of a cluster. Zero values have the defaults named here.
type ClusterOptions struct {
	UID    string        // of kube-system; "": not known yet, the first that answers is trusted
	Probe  time.Duration // between two reads of kube-system, and their time limit; 0: 5 s
	Logger *slog.Logger  // nil: the default logger
	// Dynamic is a client of the same server for resources that have no Go type; nil:
	// nobody reads such resources.
	Dynamic dynamic.Interface
}

// Cluster is a client of an API server, and the gate before it: nobody speaks to a
// server that did not prove itself. Run probes the namespace kube-system every few
// seconds, from a quorum: a frozen server, a half-open link, another cluster (F47) and
// a history that went back (F45) show there, whatever the watches say. All that read
// one cluster with the same credentials share one Cluster.
type Cluster struct {
	client  clients.Interface
	dynamic dynamic.Interface
	every   time.Duration
	log     *slog.Logger
	wake    wake.Signal

	mu      sync.Mutex
	uid     string // of kube-system; empty until the first proof
	trouble error  // why the gate is closed; nil is open
	steady  recentVersions
	epoch   uint64        // of the server's history; everything is listed once in each
	highest uint64        // version seen last
	started uint64        // rounds of the probe
	proved  uint64        // the last round that was good
	lost    chan struct{} // closed when the present permit ends
	changed chan struct{} // closed by every round's end
}

// permit is leave to speak to the server until lost is closed.
type permit struct {
	lost  <-chan struct{}
	epoch uint64
}

// errNotYet is why the gate is closed before the first round of the probe.
var errNotYet = errors.New("not connected yet")

// NewCluster makes a Cluster whose gate is closed; Run opens it.
func NewCluster(client clients.Interface, o ClusterOptions) *Cluster {
	return &Cluster{
		client: client, dynamic: o.Dynamic, every: cmp.Or(o.Probe, 5*time.Second), log: cmp.Or(o.Logger, slog.Default()),
		uid: o.UID, epoch: 1, wake: wake.New(),
		trouble: errNotYet, lost: make(chan struct{}), changed: make(chan struct{}),
	}
}

// Client speaks to the server without a proof of who it is.
func (c *Cluster) Client() clients.Interface { return c.client }

// Dynamic is Client for resources that have no Go type; nil: there is none.
func (c *Cluster) Dynamic() dynamic.Interface { return c.dynamic }

// UID is that of the known cluster; empty until it is known.
func (c *Cluster) UID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.uid
}

// Relist makes everyone list everything again.
func (c *Cluster) Relist() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nextEpoch()
}

// nextEpoch makes everyone list everything again. The caller holds the lock.
func (c *Cluster) nextEpoch() {
	c.epoch++
	if c.trouble == nil {
		close(c.lost)
		c.lost = make(chan struct{})
	}
}

// Read calls read once the cluster has proven itself. What was read counts if Read
// returns nil: the known cluster still answered afterwards.
func (c *Cluster) Read(ctx context.Context, read func(context.Context, clients.Interface) error) error {
	s, err := c.enter(ctx, func(error) {})
	if err != nil {
		return UnprovenError{c.why(err)}
	}
	unread := read(ctx, c.client)
	if err := c.prove(ctx, s); err != nil {
		return UnprovenError{c.why(err)}
	}
	return unread
}

// Verify asks the server, with a client of the caller's own, whether it is of the cluster
// with this UID. It does not wait for the gate: while that is closed it fails at once.
func (c *Cluster) Verify(ctx context.Context, client clients.Interface, uid string) error {
	if err := c.why(nil); err != nil {
		return UnprovenError{err}
	}
	found := whose(ctx, client)
	if found.err == nil && found.uid != uid {
		return ForeignError{Want: uid, Have: found.uid}
	}
	return found.err
}

// why is why the gate is closed, or the error where it is open.
func (c *Cluster) why(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return cmp.Or(c.trouble, err)
}

// enter blocks until the gate is open or the context ends. It tells each reason why the
// gate is closed.
func (c *Cluster) enter(ctx context.Context, closed func(why error)) (permit, error) {
	told := errNotYet.Error()
	for {
		c.mu.Lock()
		trouble, s, changed := c.trouble, permit{lost: c.lost, epoch: c.epoch}, c.changed
		c.mu.Unlock()
		if trouble == nil {
			return s, nil
		}
		if trouble.Error() != told {
			told = trouble.Error()
			closed(trouble)
		}
		select {
		case <-ctx.Done():
			return permit{}, ctx.Err()
		case <-changed:
		}
	}
}

// ask makes the next round of the probe begin without delay.
func (c *Cluster) ask() {
	c.wake.Notify()
}

// prove blocks until a probe that began after the call has ended, and returns
// nil if the permit is still good: what was read before the call came from the
// known cluster.
func (c *Cluster) prove(ctx context.Context, s permit) error {
	c.mu.Lock()
	need := c.started + 1
	c.mu.Unlock()
	c.ask()
	for {
		c.mu.Lock()
		done, changed := c.proved >= need, c.changed
		c.mu.Unlock()
		select {
		case <-s.lost:
			return ErrRelist
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
