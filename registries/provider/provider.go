// Package provider says what a kind of registry is. Each kind has a room of its own, which
// exports one Kind; the hub has the list of them, and no code of its own for any.
package provider

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"syscall"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/attach"
	"isthmus.dev/isthmus/registries"
)

// Kind is one kind of registry.
type Kind struct {
	Provider federation.Provider
	// NotAttached is why no cluster of it can be attached. The rest is empty then.
	NotAttached string
	// HasSection: it needs its own section in the config file, which has the provider's
	// name in lower case.
	HasSection bool
	// Identified: a UID identifies a cluster of it. It is served under
	// one ID only, and another cluster in its place is held.
	Identified bool
	// NeedsCredentials: a Cluster object of it without credentials cannot be attached.
	NeedsCredentials bool
	// File is the file that the section names and that is looked at: when it changes, the
	// cluster is attached again; nil: there is none.
	File func(section any) string
	// Open makes a registry; it does not block.
	Open func(Cluster) (registries.Registry, error)
	// Access reads requests that attach a cluster, and Look looks at the cluster before;
	// nil: none is attached by a request.
	Access attach.Access
	Look   attach.Looker
}

// Cluster is one cluster to open.
type Cluster struct {
	ID      federation.ClusterID
	Network federation.NetworkID
	Limits  federation.Limits
	// Section is the kind's own, a pointer; nil where none was given.
	Section any
	// Kept are the credentials that were given with a Cluster object; nil: the section
	// names them.
	Kept  *attach.Credentials
	Known federation.ClusterIdentity // see registries.Cluster
}

// Host is what the hub offers to registries of all kinds.
type Host struct {
	Policy federation.AddressPolicy
	Limits federation.Limits // of clusters that name none themselves
	Logger *slog.Logger
	// Used returns where a registry tells what it keeps of its cluster. Ended is for
	// registries that end.
	Used  func(federation.ClusterID, federation.Limits) func(federation.Usage)
	Ended func(federation.ClusterID)
	// Count counts a request of the kind to a cluster, which is one of few fixed words, never a path.
	Count func(of federation.Provider, id federation.ClusterID, request string)
}

// Allow is the address policy as a check of one connection.
func (h Host) Allow(to netip.AddrPort) error {
	if why := h.Policy.Refuse(to.Addr(), to.Port()); why != "" {
		if to.Addr().IsLoopback() && !h.Policy.AllowLoopback {
			why += ", which the hub uses with --dev only"
		}
		return fmt.Errorf("the address %s %s", to, why)
	}
	return nil
}

// Dial connects to what the address policy allows; it is asked after DNS.
func (h Host) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: 10 * time.Second, Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("the address policy does not know %q", address)
		}
		return h.Allow(to)
	}}
	return dialer.DialContext(ctx, network, address)
}

// Running makes a registries.Registry of a kind's own.
type Running struct {
	Do     func(ctx context.Context, to registries.Sink) error
	Active func() (lastEvent, lastSync time.Time)
}

// Run is part of registries.Registry.
func (r Running) Run(ctx context.Context, to registries.Sink) error { return r.Do(ctx, to) }

// Activity is part of registries.Active.
func (r Running) Activity() (lastEvent, lastSync time.Time) { return r.Active() }

// Beside runs the function as long as what follows a cluster. A panic of it is one
// of the registry.
func Beside(ctx context.Context, what func(context.Context), run func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan any, 1)
	go func() {
		defer cancel()
		defer func() { ended <- recover() }()
		what(ctx)
		<-ctx.Done()
	}()
	err := run(ctx)
	cancel()
	if p := <-ended; p != nil {
		panic(p)
	}
	return err
}
