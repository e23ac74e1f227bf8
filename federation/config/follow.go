package config

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"isthmus.dev/isthmus/internal/retry"
)

// codeStopped is of a source that ended and is started again.
const codeStopped = "SOURCE_STOPPED"

func stopped(problems []Problem) bool { return len(problems) > 0 && problems[0].Code == codeStopped }

// A source that ended is started again after firstPause, then after twice as
// long each time up to longestPause; one that ran for longer starts with the shortest.
const (
	firstPause   = time.Second
	longestPause = 30 * time.Second
)

// Run follows every source until the context ends.
func (a *Aggregate) Run(ctx context.Context) error {
	var running sync.WaitGroup
	for i := range a.sources {
		running.Go(func() { a.follow(ctx, i) })
	}
	running.Wait()
	return ctx.Err()
}

func (a *Aggregate) follow(ctx context.Context, i int) {
	pauses := retry.Backoff{First: firstPause, Longest: longestPause}
	for {
		began := time.Now()
		err := a.runOnce(ctx, i)
		if ctx.Err() != nil {
			return
		}
		pauses.Began(began)
		pause := pauses.Next()
		a.log.Warn("a source of configuration ended and is started again", "source", a.sources[i].Name, "err", err, "retryIn", pause)
		a.trouble(i, []Problem{{
			Code:    codeStopped,
			Message: fmt.Sprintf("%v; it is started again in %v, and what it gave stays in force", err, pause),
		}})
		if !retry.Sleep(ctx, pause) {
			return
		}
	}
}

// runOnce runs the source, and lets nothing of it in after it returned.
func (a *Aggregate) runOnce(ctx context.Context, i int) (err error) {
	s := &intake{aggregate: a, source: i}
	defer s.close()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the source %s panicked: %v", a.sources[i].Name, p)
		}
	}()
	if err := a.sources[i].Source.Run(ctx, s); err != nil {
		return err
	}
	return errors.New("the source ended without an error")
}

// intake is the Sink of one run of a source.
type intake struct {
	aggregate *Aggregate
	source    int
	mu        sync.Mutex
	closed    bool
}

func (s *intake) Update(u Update) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.aggregate.update(s.source, u)
	}
}

func (s *intake) Trouble(problems []Problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.aggregate.trouble(s.source, problems)
	}
}

func (s *intake) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}
