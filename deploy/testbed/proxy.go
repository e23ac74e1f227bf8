package testbed

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"
)

// ProxyOptions say where a proxy listens and whereto it connects.
type ProxyOptions struct {
	Namespace *Namespace // Where it listens; nil is the network of the test.
	Address   netip.Addr // Default the namespace's first address, else 127.0.0.1.
	Port      int        // Default a free one.
	Target    string     // Host and port, literal.
	TargetIn  *Namespace // Where it connects from; nil is the network of the test.
}

// Proxy is a TCP proxy that misbehaves on demand. It also joins two networks
// that cannot reach each other. Its methods may be called from any goroutine.
type Proxy struct {
	t       testing.TB
	options ProxyOptions
	addr    string

	mu       sync.Mutex
	listener net.Listener
	conduct  conduct
	changed  chan struct{} // Closed when conduct changes.
	conns    map[net.Conn]bool
	accepted int
	closed   bool
	running  sync.WaitGroup
}

// conduct is how the proxy treats what it forwards.
type conduct struct {
	blackhole bool
	delay     time.Duration
	limit     int // Bytes a second for each direction of a connection; 0 means no limit.
}

// StartProxy forwards to a target, host and port, on loopback.
func StartProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	return StartProxyWith(t, ProxyOptions{Target: target})
}

// StartProxyWith forwards until the test ends.
func StartProxyWith(t testing.TB, options ProxyOptions) *Proxy {
	t.Helper()
	at := options.Namespace.place(options.Address)
	if options.Port == 0 {
		options.Port = FreePort(t, options.Namespace, at)
	}
	p := &Proxy{
		t: t, options: options, addr: netip.AddrPortFrom(at, uint16(options.Port)).String(),
		changed: make(chan struct{}), conns: map[net.Conn]bool{},
	}
	t.Cleanup(p.close)
	p.Accept()
	return p
}

// Addr returns host and port that the proxy listens on; they never change.
func (p *Proxy) Addr() string { return p.addr }

// Accepted returns how many connections were accepted so far.
func (p *Proxy) Accepted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accepted
}

// Pass forwards all again, undoing Blackhole, Refuse, Delay and Limit.
func (p *Proxy) Pass() {
	p.t.Helper()
	p.conductAs(func(c *conduct) { *c = conduct{} })
	p.Accept()
}

// Blackhole stops forwarding. Connections, new ones too, stay open and silent;
// what was sent meanwhile is delivered after Pass.
func (p *Proxy) Blackhole() { p.conductAs(func(c *conduct) { c.blackhole = true }) }

// Delay makes each piece of data arrive later, in both directions.
func (p *Proxy) Delay(by time.Duration) { p.conductAs(func(c *conduct) { c.delay = by }) }

// Limit bounds the bytes a second of each direction of each connection.
func (p *Proxy) Limit(bytes int) { p.conductAs(func(c *conduct) { c.limit = bytes }) }

// Refuse makes new connections be refused; open ones go on. See Reset.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		p.listener.Close()
		p.listener = nil
	}
}

// Accept ends a Refuse.
func (p *Proxy) Accept() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil || p.closed {
		return
	}
	listener, err := p.options.Namespace.Listen(p.addr)
	if err != nil {
		p.t.Fatalf("starting the proxy to %s: %v", p.options.Target, err)
	}
	p.listener = listener
	p.running.Go(func() { p.serve(listener) })
}

// Reset breaks all open connections with a TCP reset on both sides.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		abort(conn)
	}
	clear(p.conns)
	p.wake()
}

// reset breaks one connection as Reset does.
func (p *Proxy) reset(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns[conn] {
		abort(conn)
		delete(p.conns, conn)
		p.wake()
	}
}

// endWrite signals that no more data comes, unless the connection was reset.
func (p *Proxy) endWrite(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if tcp, ok := conn.(*net.TCPConn); ok && p.conns[conn] {
		tcp.CloseWrite()
	}
}

func abort(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	conn.Close()
}

func (p *Proxy) conductAs(change func(*conduct)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.conduct)
	p.wake()
}

// wake tells all who wait to look again; p.mu is held.
func (p *Proxy) wake() {
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *Proxy) now() (conduct, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.conduct, p.changed
}

func (p *Proxy) serve(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		p.accepted++
		p.mu.Unlock()
		if p.keep(conn) {
			p.running.Go(func() { p.forward(conn) })
		}
	}
}

// forward carries one connection until either side or the test ends it.
func (p *Proxy) forward(near net.Conn) {
	done := make(chan struct{})
	defer close(done)
	defer p.drop(near)
	if !p.passable(done, near) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	far, err := p.options.TargetIn.DialContext(ctx, "tcp", p.options.Target)
	if err != nil || !p.keep(far) {
		p.reset(near)
		return
	}
	defer p.drop(far)
	var both sync.WaitGroup
	both.Go(func() { p.carry(near, far) })
	both.Go(func() { p.carry(far, near) })
	both.Wait()
}

// passable waits while the proxy is a black hole; false means that it closed.
func (p *Proxy) passable(done <-chan struct{}, conn net.Conn) bool {
	for {
		conduct, changed := p.now()
		if !p.holds(conn) {
			return false
		}
		if !conduct.blackhole {
			return true
		}
		select {
		case <-changed:
		case <-done:
			return false
		}
	}
}

// keep notes a connection for Reset; it is closed at once if the proxy is.
func (p *Proxy) keep(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		conn.Close()
		return false
	}
	p.conns[conn] = true
	return true
}

func (p *Proxy) holds(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.conns[conn] && !p.closed
}

func (p *Proxy) drop(conn net.Conn) {
	conn.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, conn)
}

func (p *Proxy) close() {
	p.Refuse()
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.Reset()
	p.conductAs(func(c *conduct) { *c = conduct{} })
	p.running.Wait()
}
