// Package listeners opens the addresses of a hub, and bounds what may come in there.
package listeners

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/clientaddr"
	"isthmus.dev/isthmus/internal/metrics"
	"isthmus.dev/isthmus/internal/server"
)

// Address is one address to listen on and the flag that names it.
type Address struct{ Flag, At string }

// Addresses are those of a hub.
type Addresses struct{ GraphQL, XDS, Health Address }

// Limits bound the connections of each listener.
type Limits struct {
	GraphQL, XDS, Health server.ConnectionLimits
	XDSIdle              time.Duration
	PartialMessages      int // bytes
}

// Listeners are the hub's open doors.
type Listeners struct{ GraphQL, XDS, Health net.Listener }

// Open opens all or none.
func Open(ctx context.Context, at Addresses, loopbackOnly bool) (Listeners, error) {
	var l Listeners
	for _, one := range []struct {
		Address
		open *net.Listener
	}{{at.GraphQL, &l.GraphQL}, {at.XDS, &l.XDS}, {at.Health, &l.Health}} {
		listener, err := server.Listen(ctx, one.At, server.ListenOptions{Flag: one.Flag, LoopbackOnly: loopbackOnly})
		if err != nil {
			return Listeners{}, errors.Join(err, l.Close())
		}
		*one.open = listener
	}
	return l, nil
}

func (l Listeners) all() []net.Listener { return []net.Listener{l.GraphQL, l.XDS, l.Health} }

// Close closes those that are open.
func (l Listeners) Close() error {
	var wrong []error
	for _, listener := range l.all() {
		if listener == nil {
			continue
		}
		wrong = append(wrong, listener.Close())
	}
	return errors.Join(wrong...)
}

// Policy is the address policy of this hub: its own doors are never offered.
func (l Listeners) Policy(dev bool) federation.AddressPolicy {
	p := federation.AddressPolicy{AllowLoopback: dev}
	for _, listener := range l.all() {
		if tcp, ok := listener.Addr().(*net.TCPAddr); ok {
			own := tcp.AddrPort()
			p.Own = append(p.Own, netip.AddrPortFrom(own.Addr().Unmap(), own.Port()))
		}
	}
	return p
}

// Limited bounds the connections of the listeners.
func (l Listeners) Limited(s Limits, to server.ConnectionMetrics, log *clientaddr.Log) Listeners {
	bound := func(listener net.Listener, name string, limits server.ConnectionLimits) net.Listener {
		return server.Limit(listener, server.LimitOptions{Name: name, Limits: limits, Brief: name == "health", Metrics: to, Log: log})
	}
	return Listeners{
		GraphQL: bound(l.GraphQL, "graphql", s.GraphQL), XDS: bound(l.XDS, "xds", s.XDS), Health: bound(l.Health, "health", s.Health),
	}
}

// GRPC is how xDS is reached.
func (s Limits) GRPC(config *tls.Config, to *metrics.Server, log *clientaddr.Log) server.GRPC {
	partial := server.NewPartialMessages(s.PartialMessages, server.LimitOptions{Name: "xds", Metrics: to, Log: log})
	return server.GRPC{
		TLS: config, Idle: s.XDSIdle, Partial: partial, Handshakes: server.HandshakeOptions{Listener: "xds", Metrics: to, Log: log},
	}
}
