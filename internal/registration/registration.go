// Package registration keeps WorkloadEntries of proxies that register themselves: a proxy names
// a WorkloadGroup, and is a workload of it for as long as it is connected to any hub, and a
// grace period longer. It keeps what proxies of other WorkloadEntries report about the health of
// their workloads in the same way. The store of record has each record with a lease, so that
// nothing is left of a hub that was killed (ADR 147, 199).
package registration

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/internal/wake"
)

// Proxy is a proxy that asks to be a workload of a group, or to report the health of a WorkloadEntry's workload, with
// what it proved.
type Proxy struct {
	Node        string // its ID
	Cluster     federation.ClusterID
	TrustDomain string
	Namespace   string
	Account     string
	Group       string               // the name of a WorkloadGroup of its namespace
	Entry       string               // without a group: the name of a WorkloadEntry of its namespace
	Addresses   []netip.Addr         // one or more; a workload of a group is at the first, a WorkloadEntry at any
	Source      netip.Addr           // from where it connects; not valid: it is not known
	Network     federation.NetworkID // empty: that of the group
	Locality    federation.Locality  // zero: that of the group
	Probed      bool                 // its agent reports health; until it does, the workload is unhealthy
	Identity    bool                 // it takes mutual TLS
}

// Registrar stores WorkloadEntries with leases; an apply.Engine does.
type Registrar interface {
	Register(ctx context.Context, manifest []byte, ttl time.Duration) (expires time.Time, problems []apply.Error, err error)
}

// Metrics counts registrations. Its methods must not block.
type Metrics interface {
	Members(change int)
	Refused(reason string)
}

type uncounted struct{}

func (uncounted) Members(int)    {}
func (uncounted) Refused(string) {}

// The defaults of Options.
const (
	DefaultGrace   = 15 * time.Second
	DefaultMembers = 1000
	// pace is the time between two writes for one proxy, however often its health changes.
	pace = time.Second
	// mostWrites is how many writes are on their way to the store at a time, ofOneAccount how many of them for proxies of one
	// account. Renewals have as many places as writes, of their own: they are quick, and cannot wait for long.
	mostWrites   = 8
	ofOneAccount = mostWrites / 2
)

// Options are what a Keeper works with. All fields up to Leases are required.
type Options struct {
	Snapshots interface{ Latest() *federation.Snapshot }
	Views     interface{ Latest() *config.View }
	Registrar Registrar
	Leases    config.Leases
	Hub       federation.ClusterID // whose trust domain that of WorkloadEntries is
	Grace     time.Duration        // from when a proxy left until its record is deleted, at most; 0: DefaultGrace
	Members   int                  // of one account at this hub; 0: DefaultMembers
	Metrics   Metrics              // nil: nothing is counted
	Logger    *slog.Logger         // nil: slog's default
}

// Keeper keeps the records of the proxies that are connected to this hub. Its methods may
// be called by many goroutines.
type Keeper struct {
	o                Options
	joined           wake.Signal // has one value when somebody waits
	writes, renewals places

	mu       sync.Mutex
	waiting  []*member
	members  map[federation.ObjectKey]*member
	accounts map[account]*accountMembers
}

// accountMembers are the members of one account. A member counts until its writer has ended, even if another has its
// place before: who reconnects under other names has no more writers, nor more places, for that.
type accountMembers struct {
	members int // guarded by the keeper's mu
	writes  places
}

// account is who proved itself: what counts together.
type account struct{ trustDomain, namespace, name string }

func (p Proxy) address() netip.Addr { return p.Addresses[0] }

func (p Proxy) account() account { return account{p.TrustDomain, p.Namespace, p.Account} }

// New makes a keeper.
func New(o Options) *Keeper {
	if o.Grace <= 0 {
		o.Grace = DefaultGrace
	}
	if o.Members <= 0 {
		o.Members = DefaultMembers
	}
	if o.Metrics == nil {
		o.Metrics = uncounted{}
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return &Keeper{
		o: o, joined: wake.New(), writes: make(places, mostWrites), renewals: make(places, mostWrites),
		members: map[federation.ObjectKey]*member{}, accounts: map[account]*accountMembers{},
	}
}

// Join makes the proxy a workload of the group that it names, or takes its reports about the WorkloadEntry, until
// Leave is called. It returns nil if the proxy is not that of the WorkloadEntry and its reports would have no effect
// anyway; call it again with the next report. The error is a *Refusal with the reason, fit for the proxy. It does not block.
func (k *Keeper) Join(p Proxy) (*Membership, error) {
	if _, err := k.recordOf(p, health{}); err != nil {
		if p.Group == "" && k.ignored(p) {
			return nil, nil
		}
		return nil, k.refused(p, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	key := p.key()
	m := k.members[key]
	switch {
	case m != nil && m.proxy.Node == p.Node && m.counted == p.account():
		m.rejoin(p)
	case m != nil && m.users > 0:
		return nil, k.refused(p, taken(p, m.proxy.Node))
	case k.countOf(p.account()) >= k.o.Members:
		return nil, k.refused(p, refuse(TooMany, "%d proxies of %s/%s are registered, which is the limit: some must leave first",
			k.o.Members, p.Namespace, p.Account))
	default:
		m = k.add(p, m)
	}
	return &Membership{member: m, keeper: k}, nil
}

// add makes a member in place of one that has left, or of none; the caller holds mu.
func (k *Keeper) add(p Proxy, before *member) *member {
	m := &member{
		keeper: k, proxy: p, counted: p.account(), users: 1,
		wake: wake.New(), back: wake.New(), ended: make(chan struct{}), dropped: make(chan struct{}),
	}
	if before != nil {
		m.replaces = before.proxy.Node
		k.drop(before)
	}
	k.members[p.key()] = m
	m.sharing = k.accounts[m.counted]
	if m.sharing == nil {
		m.sharing = &accountMembers{writes: make(places, ofOneAccount)}
		k.accounts[m.counted] = m.sharing
	}
	m.sharing.members++
	k.o.Metrics.Members(1)
	k.waiting = append(k.waiting, m)
	k.joined.Notify()
	return m
}

// countOf is how many members of the account count; the caller holds mu.
func (k *Keeper) countOf(a account) int {
	if c := k.accounts[a]; c != nil {
		return c.members
	}
	return 0
}

// drop forgets the member; the caller holds mu.
func (k *Keeper) drop(m *member) {
	if m.isDropped() {
		return
	}
	close(m.dropped)
	if k.members[m.proxy.key()] == m {
		delete(k.members, m.proxy.key())
	}
	k.o.Metrics.Members(-1)
	m.wake.Notify()
}

// uncount is for a member whose writer has ended; the caller holds mu.
func (k *Keeper) uncount(m *member) {
	m.sharing.members--
	if m.sharing.members == 0 {
		delete(k.accounts, m.counted)
	}
}

func (k *Keeper) refused(p Proxy, err error) error {
	reason := Failed
	var refusal *Refusal
	if errors.As(err, &refusal) {
		reason, err = refusal.Reason, &Refusal{refusal.Reason, words(p).refused + refusal.Message}
	}
	k.o.Metrics.Refused(string(reason))
	return err
}

// Run keeps the records until the context ends. Those of proxies that are connected then stay
// until their leases end, for another hub to take them over.
func (k *Keeper) Run(ctx context.Context) error {
	var members sync.WaitGroup
	defer members.Wait()
	for {
		k.mu.Lock()
		waiting := k.waiting
		k.waiting = nil
		k.mu.Unlock()
		for _, m := range waiting {
			members.Go(func() { m.run(ctx) })
		}
		select {
		case <-k.joined:
		case <-ctx.Done():
			return nil
		}
	}
}

// places are for so many that do something at the same time.
type places chan struct{}

// take waits for a place; false: the context ended before.
func (p places) take(ctx context.Context) bool {
	select {
	case p <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (p places) free() { <-p }
