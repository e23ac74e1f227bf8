package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// AddressPolicy says whether the hub may connect to an address; nil means yes. It is asked after DNS, once for each
// connection attempt, and must not block.
type AddressPolicy func(netip.AddrPort) error

// ErrAddressRefused marks an address that the policy refused at connect (S39).
var ErrAddressRefused = errors.New("address refused by the address policy")

// addressError is ErrAddressRefused with the address and the reason.
type addressError struct {
	target netip.AddrPort
	why    error
}

func (e *addressError) Error() string {
	return fmt.Sprintf("%v: %s: %v", ErrAddressRefused, e.target, e.why)
}
func (e *addressError) Unwrap() []error { return []error{ErrAddressRefused, e.why} }

const dialTimeout = 5 * time.Second

// dialer returns a dial function that checks every address after name resolution, just before connect.
func dialer(allow AddressPolicy) func(context.Context, string, string) (net.Conn, error) {
	d := net.Dialer{
		Timeout:   dialTimeout,
		KeepAlive: 15 * time.Second,
		Control: func(_, address string, _ syscall.RawConn) error {
			target, err := netip.ParseAddrPort(address)
			if err != nil {
				return fmt.Errorf("%w: it has no port", ErrAddressRefused)
			}
			target = netip.AddrPortFrom(target.Addr().Unmap(), target.Port())
			if err := allow(target); err != nil {
				return &addressError{target: target, why: err}
			}
			return nil
		},
	}
	return d.DialContext
}
