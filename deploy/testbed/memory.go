package testbed

import (
	"context"
	"net"
	"sync"
)

// A MemoryListener accepts connections of its own process that are not sockets. In a
// bubble of synctest they have the bubble's clock: what a server does after a minute
// comes at once and in order, however busy the machine is.
type MemoryListener struct {
	connections chan net.Conn
	closed      chan struct{}
	closeOnce   sync.Once
}

// NewMemoryListener returns a listener; open it in the bubble that uses it.
func NewMemoryListener() *MemoryListener {
	return &MemoryListener{connections: make(chan net.Conn), closed: make(chan struct{})}
}

// Dial connects to the listener, whatever the address. It fits http.Transport.
func (l *MemoryListener) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, clientEnd := net.Pipe()
	serverEnd, server := net.Pipe()
	select {
	case l.connections <- server:
		carry(clientEnd, serverEnd)
		carry(serverEnd, clientEnd)
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// carry passes on what is written, and the end after it. It holds as much as the
// buffers of a socket do: two that write to each other do not wait for each other.
func carry(from, to net.Conn) {
	chunks := make(chan []byte, 64)
	go func() {
		defer close(chunks)
		for {
			chunk := make([]byte, 4<<10)
			n, err := from.Read(chunk)
			if n > 0 {
				chunks <- chunk[:n]
			}
			if err != nil {
				return
			}
		}
	}()
	go func() {
		for chunk := range chunks {
			_, _ = to.Write(chunk) // what comes after the other side closed is lost
		}
		_ = to.Close()
	}()
}

// Accept is part of net.Listener.
func (l *MemoryListener) Accept() (net.Conn, error) {
	select {
	case connection := <-l.connections:
		return connection, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close is part of net.Listener.
func (l *MemoryListener) Close() error {
	l.closeOnce.Do(func() { close(l.closed) })
	return nil
}

// Addr is part of net.Listener.
func (l *MemoryListener) Addr() net.Addr { return memoryAddr{} }

type memoryAddr struct{}

func (memoryAddr) Network() string { return "memory" }
func (memoryAddr) String() string  { return "example.com" } // what certificates of httptest are for
