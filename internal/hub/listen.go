package hub

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/server"
)

// listeners are the hub's open doors.
type listeners struct{ graphql, xds, health net.Listener }

// openListeners opens all or none.
func openListeners(ctx context.Context, s Settings) (listeners, error) {
	var open []net.Listener
	for _, l := range s.listeners() {
		listener, err := server.Listen(ctx, l.addr, server.ListenOptions{Flag: l.flag, LoopbackOnly: s.dev})
		if err != nil {
			for _, other := range open {
				err = errors.Join(err, other.Close())
			}
			return listeners{}, err
		}
		open = append(open, listener)
	}
	return listeners{graphql: open[0], xds: open[1], health: open[2]}, nil
}

func (l listeners) all() []net.Listener { return []net.Listener{l.graphql, l.xds, l.health} }

func (l listeners) close() {
	for _, listener := range l.all() {
		_ = listener.Close() // a second close does nothing
	}
}

// policy is the address policy of this hub: its own doors are never offered.
func (l listeners) policy(dev bool) federation.AddressPolicy {
	p := federation.AddressPolicy{AllowLoopback: dev}
	for _, listener := range l.all() {
		if tcp, ok := listener.Addr().(*net.TCPAddr); ok {
			own := tcp.AddrPort()
			p.Own = append(p.Own, netip.AddrPortFrom(own.Addr().Unmap(), own.Port()))
		}
	}
	return p
}

// certificateNames are the names and addresses for which the certificate was
// made: under these the hub may be addressed.
func certificateNames(file string) ([]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert: %w", err)
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("--tls-cert %s: holds no certificate", file)
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert %s: %w", file, err)
	}
	names := leaf.DNSNames
	for _, ip := range leaf.IPAddresses {
		names = append(names, ip.String())
	}
	return names, nil
}
