// Package retry waits between tries of what may fail. The pauses are those of
// cenkalti/backoff.
package retry

import (
	"context"
	"math"
	"reflect"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Backoff is the pauses between tries of one thing. They double from First up to
// Longest. Each pause is up to a quarter longer or shorter than that, so that many
// clients of one server do not return at the same moment. It is for one goroutine.
type Backoff struct {
	First, Longest time.Duration

	pauses *backoff.ExponentialBackOff
}

// Next returns how long to wait after one more failure.
func (b *Backoff) Next() time.Duration {
	if b.pauses == nil {
		b.pauses = &backoff.ExponentialBackOff{InitialInterval: b.First, MaxInterval: b.Longest, Multiplier: 2, RandomizationFactor: 0.25}
		b.pauses.Reset()
	}
	return b.pauses.NextBackOff().Round(time.Millisecond)
}

// Reset makes the next pause the first one: a try succeeded.
func (b *Backoff) Reset() { b.pauses = nil }

// Began resets the pauses if the try that began then worked for longer than the
// longest pause before it failed.
func (b *Backoff) Began(at time.Time) {
	if time.Since(at) > b.Longest {
		b.Reset()
	}
}

// Wait waits for the next pause. It returns false if the context ended first.
func (b *Backoff) Wait(ctx context.Context) bool { return Sleep(ctx, b.Next()) }

// Until tries until that succeeds. It tells failed of each error and of the pause that
// follows. It returns false if the context ended first.
func (b *Backoff) Until(ctx context.Context, try func() error, failed func(err error, pause time.Duration)) bool {
	for {
		err := try()
		if err == nil || ctx.Err() != nil {
			return err == nil
		}
		pause := b.Next()
		failed(err, pause)
		if !Sleep(ctx, pause) {
			return false
		}
	}
}

// Sleep waits. It returns false if the context ended first.
func Sleep(ctx context.Context, d time.Duration) bool { return Await(ctx, d) }

// Forever is a pause that only news or the context end.
const Forever time.Duration = math.MaxInt64

// Await waits until the pause is over or one of the channels has a value or is closed; a nil
// channel never is. It returns false if the context ended.
func Await(ctx context.Context, pause time.Duration, news ...<-chan struct{}) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	cases := []reflect.SelectCase{
		{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(timer.C)},
		{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(ctx.Done())},
	}
	for _, c := range news {
		cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(c)})
	}
	reflect.Select(cases)
	return ctx.Err() == nil
}
