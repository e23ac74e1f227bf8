package web

import (
	"errors"
	"net"
	"net/http"
	"net/netip"

	"isthmus.dev/isthmus/internal/server"
)

// inspectPaths are where Istio's tools ask a control plane about itself.
var inspectPaths = []string{"GET /debug/", "GET /version"}

// Inspect adds what Istio's tools ask to the handlers of an address.
func Inspect(to *http.ServeMux, h http.Handler) {
	for _, path := range inspectPaths {
		to.Handle(path, h)
	}
}

// Forwarded is the handler for the health address, which knows no callers: it answers
// programs that address it as a page of this machine, as kubectl port-forward does.
func Forwarded(h http.Handler) http.Handler { return server.Guard(h, server.GuardOptions{}) }

// FromHere tells why the caller of the health address may not ask, if the settings let
// those ask who are in the hub's own pod.
func FromHere(r *http.Request, allowed bool) error {
	switch {
	case !allowed:
		return errors.New("this hub answers no questions about itself at its health address: debug.portForward is not set")
	case !isHere(r):
		return errors.New("only programs in the hub's own pod may ask at this address: use kubectl port-forward, as istioctl does")
	}
	return nil
}

func isHere(r *http.Request) bool {
	if at, is := r.Context().Value(http.LocalAddrContextKey).(net.Addr); is && at.Network() == "unix" {
		return true
	}
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && from.Addr().Unmap().IsLoopback()
}
