package server

import (
	"container/list"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"syscall"

	"isthmus.dev/isthmus/internal/clientaddr"
)

// ConnectionLimits bound the connections of a listener. They hold before TLS, so that a refused connection costs
// next to nothing.
type ConnectionLimits struct {
	Total     int // open at the same time; 0: no bound
	PerSource int // of these, from one address or IPv6 /64; 0: no bound. Does not hold for unix sockets.
	// Descriptor is the first file descriptor that a connection may not have; 0: no bound. The system gives out the
	// lowest free one, so a connection with a high one means that the process is short of them.
	Descriptor int
}

// Descriptors is how many files and connections the process may have open. The Go runtime raises the soft limit to the
// hard one at start.
func Descriptors() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int(min(limit.Cur, 1<<20))
}

// Refusal says which limit a connection was closed for.
type Refusal string

// The refusals.
const (
	TooManyConnections Refusal = "total"
	TooManyOfSource    Refusal = "source"
	FewDescriptors     Refusal = "descriptors"
)

// ConnectionMetrics counts connections. Its methods must not block.
type ConnectionMetrics interface {
	Connections(listener string, change int)
	ConnectionRefused(listener string, why string)
}

// LimitOptions are what Limit works with; all but Limits and Brief are required.
type LimitOptions struct {
	Name   string // of the listener in metrics and log: graphql, xds, health
	Limits ConnectionLimits
	// Brief: requests take no time, so that every connection may be closed for a new one, whatever it does.
	Brief   bool
	Metrics ConnectionMetrics
	Log     *clientaddr.Log
}

// Limit bounds the connections of the listener. At a limit, a connection that is not established makes room for the new
// one; if there is none, the new one is closed before anything is read from it.
func Limit(listener net.Listener, o LimitOptions) net.Listener {
	return &limitedListener{Listener: listener, o: o, sources: map[netip.Prefix]int{}, pending: newPending()}
}

// Established tells a listener of Limit that the caller at the address has sent a request that counts: its connection does
// not make room for others any more. It does nothing for other listeners.
func Established(listener net.Listener, remote net.Addr) {
	l, is := listener.(*limitedListener)
	if !is || l.o.Brief {
		return
	}
	if tcp, is := remote.(*net.TCPAddr); is {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.pending.removeAt(tcp.AddrPort())
	}
}

type limitedListener struct {
	net.Listener
	o LimitOptions

	mu      sync.Mutex
	total   int
	sources map[netip.Prefix]int
	pending *pending
}

// Accept returns the next connection that is within the limits.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		connection, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &limitedConn{Conn: connection, listener: l, from: clientaddr.OfNet(connection.RemoteAddr())}
		why, closed := l.enter(c)
		if closed != nil {
			_ = closed.Conn.Close() // its reader closes it again
			l.refused(closed, why)
		}
		if closed != c {
			return c, nil
		}
	}
}

func (l *limitedListener) refused(c *limitedConn, why Refusal) {
	l.o.Metrics.ConnectionRefused(l.o.Name, string(why))
	l.o.Log.Warn(c.from, "refusing a connection", slog.String("listener", l.o.Name), slog.String("reason", string(why)),
		slog.String("address", c.RemoteAddr().String()))
}

// enter counts the connection. At a limit it returns the connection to close: one that makes room, or c itself.
func (l *limitedListener) enter(c *limitedConn) (why Refusal, closed *limitedConn) {
	descriptor := 0
	if l.o.Limits.Descriptor > 0 {
		descriptor = descriptorOf(c.Conn)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	why = l.exceeded(c.from, descriptor)
	if why != "" {
		closed = l.pending.makesRoom(why, c.from)
		if closed == nil {
			return why, c
		}
		l.remove(closed)
	}
	l.total++
	l.sources[c.from]++
	l.pending.add(c)
	l.o.Metrics.Connections(l.o.Name, 1)
	return why, closed
}

func (l *limitedListener) exceeded(from netip.Prefix, descriptor int) Refusal {
	limits := l.o.Limits
	switch {
	case limits.PerSource > 0 && from.IsValid() && l.sources[from] >= limits.PerSource:
		return TooManyOfSource
	case limits.Total > 0 && l.total >= limits.Total:
		return TooManyConnections
	case limits.Descriptor > 0 && descriptor >= limits.Descriptor:
		return FewDescriptors
	}
	return ""
}

// remove counts the connection no more, however often it is called.
func (l *limitedListener) remove(c *limitedConn) {
	if c.removed {
		return
	}
	c.removed = true
	l.pending.remove(c)
	l.o.Metrics.Connections(l.o.Name, -1)
	l.total--
	l.sources[c.from]--
	if l.sources[c.from] == 0 {
		delete(l.sources, c.from)
	}
}

// descriptorOf is 0 where the connection has none.
func descriptorOf(connection net.Conn) int {
	has, is := connection.(syscall.Conn)
	if !is {
		return 0
	}
	raw, err := has.SyscallConn()
	if err != nil {
		return 0
	}
	descriptor := 0
	_ = raw.Control(func(fd uintptr) { descriptor = int(fd) }) // a connection that is closed has none
	return descriptor
}

// limitedConn gives its place back when it is closed.
type limitedConn struct {
	net.Conn
	listener *limitedListener
	from     netip.Prefix

	removed bool          // guarded by the listener, as is what follows
	entry   *list.Element // nil: it is not pending
}

// Close is part of net.Conn.
func (c *limitedConn) Close() error {
	defer func() {
		c.listener.mu.Lock()
		defer c.listener.mu.Unlock()
		c.listener.remove(c)
	}()
	return c.Conn.Close()
}
