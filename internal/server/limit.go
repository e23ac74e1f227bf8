package server

import (
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"syscall"

	"isthmus.dev/isthmus/internal/source"
)

// ConnectionLimits bound the connections of a listener. They hold before TLS, so that a refused connection costs
// next to nothing.
type ConnectionLimits struct {
	Total     int // open at the same time; 0: no bound
	PerSource int // of these, from one address or IPv6 /64; 0: no bound. Does not hold for unix sockets.
	// Descriptor is the first file descriptor that a connection may not have; 0: no bound. The system gives out the
	// lowest free one, so a connection with a high one says that the process is short of them.
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

// Refusal says why a connection was closed at once.
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

// LimitOptions are what Limit works with; all but Limits are required.
type LimitOptions struct {
	Name    string // of the listener in metrics and log: graphql, xds, health
	Limits  ConnectionLimits
	Metrics ConnectionMetrics
	Log     *source.Log
}

// Limit closes connections of the listener that are too many, before anything is read from them.
func Limit(listener net.Listener, o LimitOptions) net.Listener {
	return &limitedListener{Listener: listener, o: o, sources: map[netip.Prefix]int{}}
}

type limitedListener struct {
	net.Listener
	o LimitOptions

	mu      sync.Mutex
	total   int
	sources map[netip.Prefix]int
}

// Accept returns the next connection that is within the limits.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		connection, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from := source.OfNet(connection.RemoteAddr())
		why := l.enter(from, connection)
		if why == "" {
			l.o.Metrics.Connections(l.o.Name, 1)
			return &limitedConn{Conn: connection, leave: sync.OnceFunc(func() { l.leave(from) })}, nil
		}
		_ = connection.Close()
		l.o.Metrics.ConnectionRefused(l.o.Name, string(why))
		l.o.Log.Warn(from, "refusing a connection", slog.String("listener", l.o.Name), slog.String("reason", string(why)),
			slog.String("address", connection.RemoteAddr().String()))
	}
}

func (l *limitedListener) enter(from netip.Prefix, connection net.Conn) Refusal {
	limits := l.o.Limits
	if limits.Descriptor > 0 && descriptorOf(connection) >= limits.Descriptor {
		return FewDescriptors
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case limits.Total > 0 && l.total >= limits.Total:
		return TooManyConnections
	case limits.PerSource > 0 && from.IsValid() && l.sources[from] >= limits.PerSource:
		return TooManyOfSource
	}
	l.total++
	l.sources[from]++
	return ""
}

func (l *limitedListener) leave(from netip.Prefix) {
	l.o.Metrics.Connections(l.o.Name, -1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total--
	if l.sources[from]--; l.sources[from] == 0 {
		delete(l.sources, from)
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
	leave func()
}

// Close is part of net.Conn.
func (c *limitedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
