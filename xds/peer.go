package xds

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// incoming receives the messages of a stream in a goroutine of its own until the context
// ends, so that the handler can wait for other things, too. ended has the error of the last.
func incoming[M any](ctx context.Context, receive func() (M, error)) (received <-chan M, ended <-chan error) {
	messages, last := make(chan M), make(chan error, 1)
	go func() {
		for {
			m, err := receive()
			if err != nil {
				last <- err
				return
			}
			select {
			case messages <- m:
			case <-ctx.Done():
				return
			}
		}
	}()
	return messages, last
}

// nextQuestion waits for a message of a client that asks when it likes, for as long as it may
// ask.
func nextQuestion[M any](ctx context.Context, c *xdsClient, received <-chan M, ended <-chan error) (m M, err error) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		now := time.Now()
		if err := c.stillAdmitted(now); err != nil {
			return m, err
		}
		if at := c.nextProof(); !at.IsZero() {
			timer.Reset(at.Sub(now))
		}
		select {
		case m = <-received:
			return m, nil
		case err := <-ended:
			return m, err
		case <-timer.C:
		case <-ctx.Done():
			return m, ctx.Err()
		case <-c.server.drain:
			return m, errDraining
		}
	}
}

// hand sends a message, and waits until the client took it. A client that reads nothing loses
// its stream: sending ends when the handler returns.
func (c *xdsClient) hand(ctx context.Context, send func() error) error {
	within := c.server.options.Limits.Send
	timer := time.NewTimer(within)
	defer timer.Stop()
	sent := make(chan error, 1)
	go func() { sent <- send() }()
	select {
	case err := <-sent:
		return err
	case <-timer.C:
		return status.Errorf(codes.DeadlineExceeded, "the client took no response for %s", within)
	case <-ctx.Done():
		return ctx.Err()
	case <-c.server.drain:
		return errDraining
	}
}
