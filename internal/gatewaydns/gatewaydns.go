// Package gatewaydns resolves the names of networks' gateways and keeps the answers.
package gatewaydns

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/retry"
)

const (
	// DefaultEvery is how often a name is resolved.
	DefaultEvery = 30 * time.Second
	again        = 5 * time.Second // after a failure
	patience     = 5 * time.Second // with one name
	atOnce       = 8               // names
	mostAnswers  = 64              // addresses of a name that are used
)

// Snapshots has the latest snapshot.
type Snapshots interface {
	Latest() *federation.Snapshot
}

// Sink takes the addresses of names.
type Sink interface {
	Update(federation.Edit)
}

// Resolver asks for the addresses of a name.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Options of a Keeper. Snapshots and To are needed.
type Options struct {
	Snapshots Snapshots
	To        Sink
	Resolver  Resolver      // nil: that of the machine
	Every     time.Duration // 0: DefaultEvery
	Logger    *slog.Logger  // nil: nothing is logged
}

// Keeper resolves the names that the latest snapshot has for gateways, each again
// and again. What was resolved last stays while a name cannot be resolved, and
// while it resolves to nothing that may be used (F87).
type Keeper struct {
	options Options
	names   map[federation.Hostname]*known
}

// known is what is known of a name.
type known struct {
	due       time.Time
	good      []netip.Addr // what was resolved last and may be used
	addresses []netip.Addr // the addresses passed on: the good ones, and those of the last answer that are refused
	failing   bool
	refusing  bool
}

// New makes a Keeper; Run has it work.
func New(o Options) *Keeper {
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Every = cmp.Or(o.Every, DefaultEvery)
	return &Keeper{options: o, names: map[federation.Hostname]*known{}}
}

// Run resolves until the context ends.
func (k *Keeper) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		s := k.options.Snapshots.Latest()
		edit := k.follow(s)
		next := k.resolve(ctx, &edit, s.Settings().Addresses)
		if len(edit.Resolved.Set) > 0 || len(edit.Resolved.Gone) > 0 {
			k.options.To.Update(edit)
		}
		retry.Await(ctx, time.Until(next), s.Superseded())
	}
	return nil
}

// follow applies the names that the snapshot has, and drops others.
func (k *Keeper) follow(s *federation.Snapshot) federation.Edit {
	wanted := map[federation.Hostname]bool{}
	for name := range s.GatewayNames() {
		wanted[name] = true
		if k.names[name] == nil {
			k.names[name] = &known{}
		}
	}
	edit := federation.Edit{}
	edit.Resolved.Set = map[federation.Hostname][]netip.Addr{}
	for name, of := range k.names {
		if wanted[name] {
			continue
		}
		delete(k.names, name)
		if of.addresses != nil {
			edit.Resolved.Gone = append(edit.Resolved.Gone, name)
		}
	}
	return edit
}

// resolve asks for the names that are due and returns when the next one is.
func (k *Keeper) resolve(ctx context.Context, edit *federation.Edit, policy federation.AddressPolicy) time.Time {
	now := time.Now()
	next := now.Add(k.options.Every)
	answers := map[federation.Hostname]*answer{}
	var asking errgroup.Group
	asking.SetLimit(atOnce)
	for name, of := range k.names {
		if of.due.After(now) {
			continue
		}
		a := &answer{}
		answers[name] = a
		asking.Go(func() error { a.addresses, a.err = k.lookup(ctx, name); return nil })
	}
	_ = asking.Wait()
	for name, a := range answers {
		if ctx.Err() == nil && k.take(name, a, policy) {
			edit.Resolved.Set[name] = k.names[name].addresses
		}
	}
	for _, of := range k.names {
		if of.due.Before(next) {
			next = of.due
		}
	}
	return next
}

type answer struct {
	addresses []netip.Addr
	err       error
}

// take notes the answer and tells whether there is something new to say. Addresses
// that the policy refuses are passed on too, so that the network shows them as refused;
// where an answer has no others, they take no good one's place.
func (k *Keeper) take(name federation.Hostname, a *answer, policy federation.AddressPolicy) bool {
	of := k.names[name]
	if a.err != nil {
		if !of.failing {
			k.options.Logger.Warn("resolving a gateway's name; what was resolved last stays", "name", name, "err", a.err)
		}
		of.failing, of.due = true, time.Now().Add(again)
		return false
	}
	var good, refused []netip.Addr
	for _, address := range a.addresses {
		if policy.Refuse(address, 0) == "" {
			good = append(good, address)
		} else {
			refused = append(refused, address)
		}
	}
	if len(refused) > 0 && !of.refusing {
		k.options.Logger.Warn("a gateway's name resolves to addresses that may not be used", "name", name, "refused", refused, "kept",
			len(good) == 0 && len(of.good) > 0)
	}
	of.failing, of.refusing, of.due = false, len(refused) > 0, time.Now().Add(k.options.Every)
	if len(good) > 0 {
		of.good = good
	}
	now := slices.SortedFunc(slices.Values(slices.Concat(of.good, refused)), netip.Addr.Compare)
	changed := !slices.Equal(of.addresses, now)
	of.addresses = now
	return changed
}

// lookup returns the addresses in their order, each once. No address is an error.
func (k *Keeper) lookup(ctx context.Context, name federation.Hostname) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	found, err := k.options.Resolver.LookupNetIP(ctx, "ip", string(name))
	if err != nil {
		return nil, err
	}
	for i := range found {
		found[i] = found[i].Unmap()
	}
	slices.SortFunc(found, netip.Addr.Compare)
	found = slices.Compact(found)
	if len(found) == 0 {
		return nil, &net.DNSError{Err: "it has no address", Name: string(name), IsNotFound: true}
	}
	return found[:min(len(found), mostAnswers)], nil
}
