package access

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	reviewTimeout = 5 * time.Second
	maxReviews    = 4 // of a cluster at a time
	// After breakAfter failures in a row, a server is asked once every breakFor until it answers.
	breakAfter = 3
	breakFor   = 10 * time.Second
)

// attached is how a cluster is asked. Each cluster has its own slots, so that one that does not answer holds up no other
// else's tokens.
type attached struct {
	maker maker
	slots *queue

	mu      sync.Mutex
	failed  int       // times in a row
	retryAt time.Time // with failed >= breakAfter: it is not asked before
}

func newAttached(by maker) *attached { return &attached{maker: by, slots: newQueue(maxReviews)} }

// review has the cluster review the token when it is its turn. A refusal is counted before the next one's turn, whether or
// not the caller still waits for it.
func (a *attached) review(ctx context.Context, t *Tokens, in inquiry) (Account, error) {
	now := t.o.Now
	if err := a.isBroken(now()); err != nil {
		return Account{}, err
	}
	if err := a.slots.take(ctx, in.source(), reviewTimeout); err != nil {
		return Account{}, err
	}
	defer a.slots.release()
	if !t.mayTry(in.who) {
		return Account{}, errThrottled // those before it in the queue were refused
	}
	if err := a.mayAsk(now()); err != nil {
		return Account{}, err // those before it in the queue have failed
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	found, err := a.maker.review(ctx, in.uid, in.token, t.o.Audiences)
	a.answered(!errors.As(err, new(unanswered)), now())
	if errors.As(err, new(refusal)) {
		t.failed(in.who)
	}
	return found, err
}

func (a *attached) isBroken(now time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.broken(now)
}

func (a *attached) broken(now time.Time) error {
	if a.failed < breakAfter || !now.Before(a.retryAt) {
		return nil
	}
	return fmt.Errorf("its server did not answer %d times in a row; the hub asks again in %s", a.failed, a.retryAt.Sub(now).Round(time.Second))
}

// mayAsk lets one through when it is time to try again.
func (a *attached) mayAsk(now time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.broken(now); err != nil {
		return err
	}
	a.retryAt = now.Add(breakFor)
	return nil
}

func (a *attached) answered(well bool, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if well {
		a.failed = 0
		return
	}
	a.failed++
	a.retryAt = now.Add(breakFor)
}
