package transport

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// The transports of what stays open, as an Observer sees them.
const (
	webSocket   = "websocket"
	eventStream = "sse"
)

// callers count the open streams of each caller and its operations in flight, and
// tell the streams when the hub ends.
type callers struct {
	limits StreamLimits
	ending chan struct{} // Closed when every stream is to end.
	gone   chan struct{} // Closed when every stream has ended after that.

	mu    sync.Mutex
	ended bool
	total int
	open  map[place]int
	busy  map[string]int // operations in flight, by caller
}

// place is a caller on one transport.
type place struct{ transport, caller string }

func newCallers(limits StreamLimits) *callers {
	return &callers{
		limits: limits, ending: make(chan struct{}), gone: make(chan struct{}), open: make(map[place]int),
		busy: make(map[string]int),
	}
}

// enter counts a stream until leave is called, or says why it may not be opened.
func (c *callers) enter(transport string, r *http.Request) (leave func(), fault *refusal) {
	caller, known := callerOf(r)
	at := place{transport, caller}
	most := c.limits.EventStreams
	switch {
	case transport == webSocket && known:
		most = c.limits.Connections
	case transport == webSocket:
		most = c.limits.ConnectionsPerAddress
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ended:
		return nil, refuse(http.StatusServiceUnavailable, Unavailable, "the hub ends; try again elsewhere or later")
	case c.total >= c.limits.Streams:
		return nil, refuse(http.StatusServiceUnavailable, Unavailable, "the hub has as many open streams as it may; try again later")
	case c.open[at] >= most:
		return nil, refuse(http.StatusTooManyRequests, RateLimited,
			fmt.Sprintf("a caller has at most %d streams of this kind open; close one", most))
	}
	c.total++
	c.open[at]++
	return sync.OnceFunc(func() { c.leave(at) }), nil
}

// begin counts an operation until end is called, which must happen once.
func (c *callers) begin(caller string, most int) (end func(), fault *refusal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy[caller] >= most {
		return nil, refuse(http.StatusTooManyRequests, RateLimited, fmt.Sprintf("a caller has at most %d operations in flight; try again", most))
	}
	c.busy[caller]++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.busy[caller]--
		if c.busy[caller] == 0 {
			delete(c.busy, caller)
		}
	}, nil
}

func (c *callers) leave(at place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total--
	c.open[at]--
	if c.open[at] == 0 {
		delete(c.open, at)
	}
	if c.ended && c.total == 0 {
		close(c.gone)
	}
}

func (c *callers) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.ended = true
	close(c.ending)
	if c.total == 0 {
		close(c.gone)
	}
}

// callerOf names the caller: by its verified certificate, else by its address.
func callerOf(r *http.Request) (caller string, known bool) {
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		leaf := r.TLS.PeerCertificates[0]
		names := append([]string{leaf.Subject.String()}, leaf.DNSNames...)
		for _, uri := range leaf.URIs {
			names = append(names, uri.String())
		}
		return strings.Join(append(names, leaf.EmailAddresses...), "\n"), true
	}
	if remote, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		return remote.Addr().Unmap().String(), false
	}
	return r.RemoteAddr, false
}

// trustPace is how long a stream stays after its caller's certificate is no longer trusted, at most.
const trustPace = 5 * time.Second

// whileTrusted calls end when the caller's certificate expires or is no longer trusted, unless stop is
// called before: nothing of a stream outlives the right to it (B-G18, U53). It looks again and again, since
// the clock may be set, too.
func whileTrusted(trust func(*tls.ConnectionState) error, r *http.Request, end func(why error)) (stop func()) {
	if trust == nil || r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return func() {}
	}
	pause := func() time.Duration {
		return min(max(time.Until(r.TLS.PeerCertificates[0].NotAfter), time.Millisecond), trustPace)
	}
	stopped := make(chan struct{})
	go func() {
		timer := time.NewTimer(pause())
		defer timer.Stop()
		for {
			select {
			case <-timer.C:
			case <-stopped:
				return
			}
			if err := trust(r.TLS); err != nil {
				end(err)
				return
			}
			timer.Reset(pause())
		}
	}()
	return sync.OnceFunc(func() { close(stopped) })
}

// Run waits for the context to end, then ends the open streams in order:
// WebSockets are closed with 1001 and event streams end without complete, so
// that clients come back. It returns nil when all have gone, at the latest after
// the drain limit. New streams are refused from then on. A handler whose Run is
// not called serves all the same; its streams end with their connections.
func (h *Handler) Run(ctx context.Context) error {
	<-ctx.Done()
	h.callers.end()
	timer := time.NewTimer(h.options.Streams.Drain)
	defer timer.Stop()
	select {
	case <-h.callers.gone:
	case <-timer.C:
	}
	return nil
}
