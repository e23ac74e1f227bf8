package server

import (
	"container/list"
	"log/slog"
	"net"
	"sync"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"isthmus.dev/isthmus/internal/clientaddr"
)

// TooMuchOfMessages is the reason of connections that a PartialMessages closed.
const TooMuchOfMessages Refusal = "messages"

// PartialMessages bounds the memory of gRPC messages that have arrived in part, over all connections of a listener. gRPC
// opens the window of a stream for a whole message when the first bytes of one have come, and waits for the rest as long
// as the stream lasts. When there is too much, the connection that has had such messages for the longest time is closed:
// those of honest clients are whole within moments.
type PartialMessages struct {
	name    string // of the listener
	limit   int    // bytes
	metrics ConnectionMetrics
	log     *clientaddr.Log

	mu     sync.Mutex
	bytes  int
	oldest list.List // of *countedConn, that with partial messages for the longest time first
}

// NewPartialMessages makes a bound of so many bytes.
func NewPartialMessages(limit int, o LimitOptions) *PartialMessages {
	return &PartialMessages{name: o.Name, limit: limit, metrics: o.Metrics, log: o.Log}
}

// account adds what the partial messages of the connection cost now, and closes connections if all cost too much.
func (p *PartialMessages) account(c *countedConn, cost int) {
	p.mu.Lock()
	var over []*countedConn
	if !c.over {
		p.set(c, cost)
		for p.bytes > p.limit {
			longest := p.oldest.Front().Value.(*countedConn)
			p.set(longest, 0)
			longest.over = true
			over = append(over, longest)
		}
	}
	p.mu.Unlock()
	for _, closing := range over {
		_ = closing.raw.Close() // without the farewell of TLS, which waits for the client
		p.metrics.ConnectionRefused(p.name, string(TooMuchOfMessages))
		p.log.Warn(clientaddr.OfNet(closing.RemoteAddr()), "closing a connection: messages that have arrived in part take too much memory",
			slog.String("listener", p.name), slog.String("reason", string(TooMuchOfMessages)), slog.String("address", closing.RemoteAddr().String()))
	}
}

func (p *PartialMessages) set(c *countedConn, cost int) {
	p.bytes += cost - c.noted
	c.noted = cost
	switch {
	case cost == 0 && c.entry != nil:
		p.oldest.Remove(c.entry)
		c.entry = nil
	case cost > 0 && c.entry == nil:
		c.entry = p.oldest.PushBack(c)
	}
}

// leave forgets a connection that is closed.
func (p *PartialMessages) leave(c *countedConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.set(c, 0)
	c.over = true
}

// credentials counts on the connections of the credentials; nil: plaintext.
func (p *PartialMessages) credentials(of credentials.TransportCredentials) credentials.TransportCredentials {
	if of == nil {
		of = insecure.NewCredentials()
	}
	return countingCredentials{of, p}
}

type countingCredentials struct {
	credentials.TransportCredentials
	partial *PartialMessages
}

// ServerHandshake is part of credentials.TransportCredentials.
func (c countingCredentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	connection, info, err := c.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	return newCountedConn(connection, raw, c.partial), info, nil
}

// Clone is part of credentials.TransportCredentials.
func (c countingCredentials) Clone() credentials.TransportCredentials {
	return countingCredentials{c.TransportCredentials.Clone(), c.partial}
}
