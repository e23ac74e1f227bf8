package graph

import "sync"

// mostSpans is how many changes are remembered. A client that waits in several requests
// sends the next one at once.
const mostSpans = 1000

// span are the versions of the snapshot above after, up to upTo.
type span struct{ after, upTo uint64 }

// requestKey tells requests for changes apart. Callers choose their idempotency keys, so that two of them may choose the
// same one.
type requestKey struct{ author, idempotency string }

// spans are those of the latest changes, by their requests: a caller that
// repeats a request waits for the proxies that its change affects. It is safe for
// concurrent use.
type spans struct {
	mu     sync.Mutex
	of     map[requestKey]span
	oldest []requestKey
}

func newSpans() *spans { return &spans{of: map[requestKey]span{}} }

// first returns the span of the first request with the key, which is the given one if
// there was none.
func (s *spans) first(key requestKey, now span) span {
	if key.idempotency == "" {
		return now
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, repeated := s.of[key]; repeated {
		return known
	}
	if now.after == now.upTo {
		return now // it changed nothing, or another process made the change
	}
	if len(s.oldest) == mostSpans {
		delete(s.of, s.oldest[0])
		s.oldest = s.oldest[1:]
	}
	s.of[key], s.oldest = now, append(s.oldest, key)
	return now
}
