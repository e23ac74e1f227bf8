package testbed

import (
	"bytes"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"
)

// everyProtocol is ETH_P_ALL in network byte order.
const everyProtocol = 0x0300

// A Wire is what was seen on the links of a namespace, as it was sent.
type Wire struct {
	namespace *Namespace
	socket    int
	ended     sync.WaitGroup
	mu        sync.Mutex
	seen      bytes.Buffer
	closed    bool
}

// Sniff reads all packets on all links of the namespace, loopback included, and
// keeps them, until Close or the end of the test.
func (n *Namespace) Sniff() *Wire {
	n.t.Helper()
	w := &Wire{namespace: n}
	err := n.Run(func() (err error) {
		w.socket, err = syscall.Socket(syscall.AF_PACKET, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, everyProtocol)
		return err
	})
	if err == nil {
		limit := syscall.NsecToTimeval((100 * time.Millisecond).Nanoseconds())
		err = syscall.SetsockoptTimeval(w.socket, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &limit)
	}
	if err != nil {
		n.t.Fatalf("reading the packets of %s: %v", n, err)
	}
	w.ended.Go(w.read)
	n.t.Cleanup(w.Close)
	return w
}

func (w *Wire) read() {
	packet := make([]byte, 1<<17)
	for !w.isClosed() {
		size, _, err := syscall.Recvfrom(w.socket, packet, 0)
		if err != nil {
			continue // nothing came in time
		}
		w.mu.Lock()
		w.seen.Write(packet[:size])
		w.mu.Unlock()
	}
}

func (w *Wire) isClosed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed
}

// Saw reports whether the bytes were in a packet of which the namespace had a part
// before the call.
func (w *Wire) Saw(text string) bool {
	w.namespace.t.Helper()
	last := secret()
	err := w.namespace.Run(func() error {
		conn, err := net.Dial("udp", "127.0.0.1:9")
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = conn.Write([]byte(last))
		return err
	})
	if err != nil {
		w.namespace.t.Fatalf("sending a packet in %s: %v", w.namespace, err)
	}
	WaitFor(w.namespace.t, readyLimit, "the last packet of "+w.namespace.name, func() error {
		if !w.holds(last) {
			return errors.New("it was not seen")
		}
		return nil
	})
	return w.holds(text)
}

func (w *Wire) holds(text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return bytes.Contains(w.seen.Bytes(), []byte(text))
}

// Close ends the reading; what was seen is forgotten.
func (w *Wire) Close() {
	w.mu.Lock()
	again := w.closed
	w.closed = true
	w.mu.Unlock()
	if again {
		return
	}
	w.ended.Wait()
	w.seen = bytes.Buffer{}
	syscall.Close(w.socket)
}
