package transport

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// leastHeld is what every request counts for: its headers, and what answers it.
const leastHeld = 64 << 10

// holds count the bytes of requests and answers that are in memory while clients send or read them. A slow client has no
// place in flight, and over HTTP/2 one connection has many requests: without a bound, one caller fills the memory.
type holds struct {
	limits Limits

	mu      sync.Mutex
	total   int64
	callers map[string]int64
	large   map[string]int // bodies above Limits.Body
	larges  int
}

func newHolds(limits Limits) *holds {
	return &holds{limits: limits, callers: make(map[string]int64), large: make(map[string]int)}
}

// hold is what one request or stream holds. It is for one goroutine, but for while.
type hold struct {
	of     *holds
	caller string
	bytes  int64
	large  bool
}

// begin counts a request until its hold ends, which must happen once.
func (h *holds) begin(caller string) (*hold, *refusal) {
	held := &hold{of: h, caller: caller}
	return held, held.more(leastHeld)
}

// more counts further bytes, or says why they may not be held.
func (h *hold) more(bytes int64) *refusal {
	of := h.of
	of.mu.Lock()
	defer of.mu.Unlock()
	switch {
	case of.callers[h.caller]+bytes > of.limits.HeldPerCaller:
		return refuse(http.StatusTooManyRequests, RateLimited,
			fmt.Sprintf("requests and answers of a caller hold at most %d bytes; read the answers, and try again", of.limits.HeldPerCaller))
	case of.total+bytes > of.limits.Held:
		return refuse(http.StatusServiceUnavailable, Unavailable, "slow clients hold as much of the hub's memory as they may; try again")
	}
	of.total += bytes
	of.callers[h.caller] += bytes
	h.bytes += bytes
	return nil
}

// while counts further bytes while it runs what writes them; false: they may not be held.
func (h *hold) while(bytes int, write func()) bool {
	if h == nil {
		write()
		return true
	}
	own := &hold{of: h.of, caller: h.caller}
	if own.more(int64(bytes)) != nil {
		return false
	}
	defer own.end()
	write()
	return true
}

// enlarge takes one of the few places for large bodies, of which one caller has half.
func (h *hold) enlarge() *refusal {
	of := h.of
	of.mu.Lock()
	defer of.mu.Unlock()
	share := max(1, of.limits.LargeBodies/2)
	switch {
	case of.large[h.caller] >= share:
		return refuse(http.StatusTooManyRequests, RateLimited,
			fmt.Sprintf("a caller sends at most %d bodies of more than %d bytes at the same time; try again", share, of.limits.Body))
	case of.larges >= of.limits.LargeBodies:
		return refuse(http.StatusServiceUnavailable, Unavailable,
			fmt.Sprintf("the hub takes at most %d bodies of more than %d bytes at the same time; try again", of.limits.LargeBodies, of.limits.Body))
	}
	of.larges++
	of.large[h.caller]++
	h.large = true
	return nil
}

func (h *hold) end() {
	of := h.of
	of.mu.Lock()
	defer of.mu.Unlock()
	of.total -= h.bytes
	of.callers[h.caller] -= h.bytes
	if of.callers[h.caller] == 0 {
		delete(of.callers, h.caller)
	}
	if h.large {
		of.larges--
		of.large[h.caller]--
		if of.large[h.caller] == 0 {
			delete(of.large, h.caller)
		}
	}
	h.bytes, h.large = 0, false
}

// heldBody counts what of a body has arrived. Its error may be a holdExceeded.
type heldBody struct {
	io.Reader
	held *hold
}

// errHeld ends a stream whose client reads too little of it.
var errHeld = errors.New("streams of the caller hold too much that it did not read")

// holdExceeded is that what arrives may not be held.
type holdExceeded struct{ refusal *refusal }

func (holdExceeded) Error() string { return "too much is held" }

func (b heldBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if fault := b.held.more(int64(n)); fault != nil {
		return 0, holdExceeded{fault}
	}
	return n, err
}
