package testbed

import (
	"net"
	"time"
)

// piece is data on its way through a Proxy.
type piece struct {
	data []byte
	due  time.Time
}

// carry moves data one way, keeping the order and adding the delay to each
// piece without slowing the flow. It passes the end of the data on.
func (p *Proxy) carry(from, to net.Conn) {
	queue := make(chan piece, 256)
	broken := make(chan struct{})
	p.running.Go(func() {
		defer close(queue)
		p.collect(from, queue, broken)
	})
	defer func() {
		for range queue {
		}
	}()
	defer close(broken)
	for next := range queue {
		if !p.deliver(next, to) {
			from.Close()
			return
		}
	}
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		half.CloseWrite()
	}
}

// collect reads until the end of the data, but not while the proxy is a black
// hole or the writer is broken.
func (p *Proxy) collect(from net.Conn, queue chan<- piece, broken <-chan struct{}) {
	buffer := make([]byte, 32<<10)
	for p.passable(broken, from) {
		conduct, _ := p.now()
		if conduct.limit > 0 && conduct.limit/10 < len(buffer) {
			buffer = buffer[:max(1, conduct.limit/10)]
		} else {
			buffer = buffer[:cap(buffer)]
		}
		n, err := from.Read(buffer)
		if n > 0 {
			next := piece{data: append([]byte(nil), buffer[:n]...), due: time.Now().Add(conduct.delay)}
			select {
			case queue <- next:
			case <-broken:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// deliver writes one piece when it is due, and then takes the time that the
// limit asks for. It reports whether the connection still works.
func (p *Proxy) deliver(next piece, to net.Conn) bool {
	if !p.pause(time.Until(next.due), to) || !p.passable(nil, to) {
		return false
	}
	if _, err := to.Write(next.data); err != nil {
		return false
	}
	conduct, _ := p.now()
	if conduct.limit > 0 {
		return p.pause(time.Duration(len(next.data))*time.Second/time.Duration(conduct.limit), to)
	}
	return true
}

// pause waits; it returns early and false when the proxy has closed.
func (p *Proxy) pause(wait time.Duration, conn net.Conn) bool {
	if wait <= 0 {
		return true
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		_, changed := p.now()
		if !p.holds(conn) {
			return false
		}
		select {
		case <-timer.C:
			return true
		case <-changed:
		}
	}
}
