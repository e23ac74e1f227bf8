package testbed

import (
	"errors"
	"io"
	"net"
	"time"
)

// piece is data on its way through a Proxy.
type piece struct {
	data []byte
	due  time.Time
}

// carry moves data one way, keeping the order and adding the delay to each
// piece without slowing the flow. It passes the end of the data on, and a reset.
func (p *Proxy) carry(from, to net.Conn) {
	queue := make(chan piece, 256)
	broken := make(chan struct{})
	ended := false // Written before queue is closed.
	p.running.Go(func() {
		defer close(queue)
		ended = p.collect(from, queue, broken)
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
	if ended {
		p.endWrite(to)
	} else {
		p.reset(to)
	}
}

// collect reads, but not while the proxy is a black hole, and reports whether
// it came to the end of the data; otherwise the connection broke.
func (p *Proxy) collect(from net.Conn, queue chan<- piece, broken <-chan struct{}) bool {
	buffer := make([]byte, 32<<10)
	for p.passable(broken, from) {
		n, err := from.Read(buffer)
		if n > 0 {
			conduct, _ := p.now()
			next := piece{data: append([]byte(nil), buffer[:n]...), due: time.Now().Add(conduct.delay)}
			select {
			case queue <- next:
			case <-broken:
				return false
			}
		}
		if err != nil {
			return errors.Is(err, io.EOF)
		}
	}
	return false
}

// deliver writes one piece when it is due, in parts of a tenth of a second if
// there is a limit. It reports whether the connection still works.
func (p *Proxy) deliver(next piece, to net.Conn) bool {
	if !p.pause(time.Until(next.due), to) {
		return false
	}
	for len(next.data) > 0 {
		if !p.passable(nil, to) {
			return false
		}
		part := next.data
		if conduct, _ := p.now(); conduct.limit > 0 {
			part = part[:min(len(part), max(1, conduct.limit/10))]
			if !p.pause(time.Duration(len(part))*time.Second/time.Duration(conduct.limit), to) {
				return false
			}
		}
		if _, err := to.Write(part); err != nil {
			return false
		}
		next.data = next.data[len(part):]
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
