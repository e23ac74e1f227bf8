package etcd

import (
	"context"
	"errors"
	"fmt"
)

// inside lets one question at a time look directly into the embedded server, and
// none once it has ended. Such a question panics over a server that has ended, with
// a lock held for which the next one would wait without end.
type inside struct {
	place chan struct{} // a caller that has put something in may ask
	ended bool          // guarded by the place
}

func newInside() *inside { return &inside{place: make(chan struct{}, 1)} }

var errEnded = errors.New("the embedded etcd has ended")

// ask waits for the answer no longer than the context: a server that failed may
// have held a lock, and then there will be none.
func (i *inside) ask(ctx context.Context, question func() error) error {
	select {
	case i.place <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	answer := make(chan error, 1)
	go func() { answer <- i.answer(question) }()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (i *inside) answer(question func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			i.ended, err = true, fmt.Errorf("%w: %v", errEnded, p)
		}
		<-i.place
	}()
	if i.ended {
		return errEnded
	}
	return question()
}

// end waits for the question that is under way and lets none follow. It is false
// for a server that has failed: that one may never answer.
func (i *inside) end(broken failure) bool {
	select {
	case why := <-broken:
		broken.say(why)
		return false
	default:
	}
	select {
	case i.place <- struct{}{}:
		i.ended = true
		<-i.place
		return true
	case why := <-broken:
		broken.say(why)
		return false
	}
}
