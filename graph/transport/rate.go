package transport

import (
	"sync"
	"time"
)

// rate allows so many messages a second, over ten seconds.
type rate struct {
	perSecond float64

	mu   sync.Mutex
	left float64
	last time.Time
}

func newRate(perSecond int) *rate {
	return &rate{perSecond: float64(perSecond), left: float64(perSecond) * 10}
}

func (r *rate) allow(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.last.IsZero() {
		r.left = min(r.left+now.Sub(r.last).Seconds()*r.perSecond, r.perSecond*10)
	}
	r.last = now
	if r.left < 1 {
		return false
	}
	r.left--
	return true
}
