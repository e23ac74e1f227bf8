package etcd

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"isthmus.dev/isthmus/internal/retry"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

const (
	// tryFor is how long the first tries of a request may take when another member
	// can be asked instead. Later tries take longer: a slow cluster answers, too.
	tryFor = time.Second
	// maxTries covers an election, which takes one or two seconds.
	maxTries   = 7
	firstDelay = 50 * time.Millisecond
)

// tries sends requests to an etcd outside the process. Each try has a deadline of
// its own. A member that was silent during the whole try is disconnected, so that
// gRPC sends nothing to it until it completes a new handshake; what is safe to
// repeat goes to another member at once.
type tries struct {
	deadline time.Duration // of the first try; 0: a single member, which alone can answer
	began    time.Time     // before any answer came; times since then do not follow the clock when it is set
	answered atomic.Int64  // when something last came from any member, in ns since then
	mu       sync.Mutex
	links    map[*link]bool
}

func newTries(members int) *tries {
	t := &tries{began: time.Now(), links: map[*link]bool{}}
	if members > 1 {
		t.deadline = tryFor
	}
	return t
}

// options make a gRPC client use the tries.
func (t *tries) options() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithContextDialer(t.dial), grpc.WithChainUnaryInterceptor(t.unary)}
}

func (t *tries) unary(ctx context.Context, method string, request, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker,
	o ...grpc.CallOption,
) error {
	pauses := retry.Backoff{First: firstDelay, Longest: tryFor}
	for n := 0; ; n++ {
		var member peer.Peer
		err := t.once(ctx, n, &member, func(ctx context.Context) error {
			return invoke(ctx, method, request, reply, cc, append(slices.Clip(o), grpc.Peer(&member))...)
		})
		if status.Code(err) != codes.Unavailable || n+1 == maxTries || !isRepeatable(ctx, request) {
			return err
		}
		if !pauses.Wait(ctx) {
			return err
		}
	}
}

func (t *tries) once(ctx context.Context, n int, member *peer.Peer, invoke func(context.Context) error) error {
	if t.deadline == 0 {
		return invoke(ctx)
	}
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, t.deadline<<(n/2))
	defer cancel()
	err := invoke(limited)
	if status.Code(err) != codes.DeadlineExceeded || ctx.Err() != nil {
		return err
	}
	if at, ok := member.Addr.(linkAddr); ok {
		at.hangUpIfSilent(began)
	}
	return status.Errorf(codes.Unavailable, "no answer from etcd within %s", time.Since(began).Round(time.Millisecond))
}

type repeatable struct{}

// repeatably marks requests as safe to repeat: the second of two that both
// arrive changes nothing.
func repeatably(ctx context.Context) context.Context {
	return context.WithValue(ctx, repeatable{}, true)
}

func isRepeatable(ctx context.Context, request any) bool {
	switch r := request.(type) {
	case *etcdserverpb.RangeRequest, *etcdserverpb.LeaseGrantRequest, *etcdserverpb.LeaseRevokeRequest:
		return true // a lease that is not used expires
	case *etcdserverpb.TxnRequest:
		if readsOnly(r.Success) && readsOnly(r.Failure) {
			return true
		}
	}
	return ctx.Value(repeatable{}) != nil
}

func readsOnly(ops []*etcdserverpb.RequestOp) bool {
	return !slices.ContainsFunc(ops, func(op *etcdserverpb.RequestOp) bool { return op.GetRequestRange() == nil })
}

// link is a connection to a member that knows when the last answer came.
type link struct {
	net.Conn
	to    string
	heard atomic.Int64 // in ns since its tries began
	of    *tries
}

func (t *tries) dial(ctx context.Context, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	l := &link{Conn: conn, to: address, of: t}
	l.heard.Store(t.at(time.Now()))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.links[l] = true
	return l, nil
}

func (l *link) Read(data []byte) (int, error) {
	n, err := l.Conn.Read(data)
	if n > 0 {
		now := l.of.at(time.Now())
		l.heard.Store(now)
		l.of.answered.Store(now)
	}
	return n, err
}

func (l *link) Close() error {
	l.of.mu.Lock()
	delete(l.of.links, l)
	l.of.mu.Unlock()
	return l.Conn.Close()
}

// RemoteAddr tells gRPC, and through it callers that ask for the peer of a request, which
// link the request went over.
func (l *link) RemoteAddr() net.Addr { return linkAddr{l.Conn.RemoteAddr(), l} }

type linkAddr struct {
	net.Addr
	*link
}

func (a linkAddr) Network() string { return a.Addr.Network() }
func (a linkAddr) String() string  { return a.Addr.String() }

// hangUpIfSilent closes the link if nothing came over it since then: its requests
// fail at once, and its watches go on at another member.
func (l *link) hangUpIfSilent(since time.Time) {
	if l.heard.Load() < l.of.at(since) {
		_ = l.Conn.Close() // gRPC closes the link when it notices
	}
}

// silentSince reports whether nothing came from any member since then. That a connection
// was accepted does not count: the kernel of a frozen member does that.
func (t *tries) silentSince(since time.Time) bool { return t.answered.Load() < t.at(since) }

func (t *tries) at(when time.Time) int64 { return int64(when.Sub(t.began)) }

// hangUp closes the links to a member that were silent since then.
func (t *tries) hangUp(address string, since time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for l := range t.links {
		if l.to == address {
			l.hangUpIfSilent(since)
		}
	}
}
