package server

import (
	"container/list"
	"encoding/binary"
	"net"
	"sync"
)

// countedConn is a connection of gRPC that tells PartialMessages what it has. It reads the frames of both directions: the
// hub's own tell which streams have ended.
type countedConn struct {
	net.Conn
	raw     net.Conn
	partial *PartialMessages

	// Guarded by partial.
	noted int
	over  bool // it is closed
	entry *list.Element

	mu      sync.Mutex
	in, out frames
	streams map[uint32]*partialMessage // those that are open
	cost    int                        // of all of them
	told    int                        // of that, what partial knows

	frame uint64 // in, for telling one from the next
	data  int    // of the frame, without padding: what is still to come
	pad   bool   // the frame's first byte is the length of its padding
}

func newCountedConn(c, raw net.Conn, partial *PartialMessages) *countedConn {
	return &countedConn{Conn: c, raw: raw, partial: partial, in: frames{preface: len(clientPreface)}, streams: map[uint32]*partialMessage{}}
}

// Read is part of net.Conn.
func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.in.scan(p[:n], received{c})
		c.report()
	}
	return n, err
}

// Write is part of net.Conn.
func (c *countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if n > 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.out.scan(p[:n], sent{c})
		c.report()
	}
	return n, err
}

// Close is part of net.Conn.
func (c *countedConn) Close() error {
	defer c.partial.leave(c)
	return c.Conn.Close()
}

func (c *countedConn) report() {
	if c.cost != c.told {
		c.told = c.cost
		c.partial.account(c, c.cost)
	}
}

func (c *countedConn) drop(stream uint32) {
	if m := c.streams[stream]; m != nil {
		c.cost -= m.cost
		delete(c.streams, stream)
	}
}

// received handles frames of the client.
type received struct{ *countedConn }

func (c received) begin(f *frames) {
	c.frame++
	c.data, c.pad = f.length(), f.kind() == dataFrame && f.has(flagPadded)
	if f.kind() == headersFrame && c.streams[f.stream()] == nil {
		c.streams[f.stream()] = &partialMessage{}
	}
}

func (c received) payload(f *frames, p []byte) {
	if f.kind() != dataFrame {
		return
	}
	if c.pad {
		c.pad = false
		c.data -= 1 + int(p[0])
		p = p[1:]
	}
	n := max(0, min(c.data, len(p)))
	c.data -= n
	if m := c.streams[f.stream()]; m != nil { // gRPC forgets what comes for others
		c.cost -= m.cost
		m.take(p[:n], c.frame, bufferCost(f.length()))
		c.cost += m.cost
	}
}

func (c received) end(f *frames) {
	if f.ends() {
		c.drop(f.stream())
	}
}

// sent handles frames of the hub.
type sent struct{ *countedConn }

func (sent) begin(*frames)           {}
func (sent) payload(*frames, []byte) {}

func (c sent) end(f *frames) {
	if f.ends() {
		c.drop(f.stream())
	}
}

// messageHeader is what gRPC puts before each message: whether it is compressed, and its length.
const messageHeader = 5

// partialMessage is what has come of a stream's next message.
type partialMessage struct {
	header [messageHeader]byte
	have   int // of the header
	left   uint32
	cost   int
	frame  uint64 // the last whose buffer the cost has
}

// take handles bytes of a frame, which may have the end of one message and the beginning of another.
func (m *partialMessage) take(p []byte, frame uint64, cost int) {
	for len(p) > 0 {
		if m.frame != frame {
			m.frame = frame
			m.cost += cost
		}
		if m.have < messageHeader {
			n := copy(m.header[m.have:], p)
			p = p[n:]
			m.have += n
			if m.have < messageHeader {
				return
			}
			m.left = binary.BigEndian.Uint32(m.header[1:])
		}
		n := min(int(m.left), len(p))
		m.left -= uint32(n)
		p = p[n:]
		if m.left == 0 {
			*m = partialMessage{}
		}
	}
}

// bufferCost is what gRPC takes for a frame of the length: a buffer of few sizes, and what it needs to keep it.
func bufferCost(length int) int {
	const kept = 128
	for _, size := range []int{4 << 10, 16 << 10} {
		if length > 1<<10 && length <= size {
			return size + kept
		}
	}
	return length + kept
}
