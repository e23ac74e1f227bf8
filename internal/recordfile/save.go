package recordfile

import (
	"context"
	"time"

	"isthmus.dev/isthmus/internal/retry"
)

const (
	saveDelay = 800 * time.Millisecond // how long changes are collected, so that each is on disk within 1 s
	saveAgain = 5 * time.Second        // the pause after a write that failed
)

// Save calls write for what changed until the context ends, and once more then. It waits for a
// sign in wake after a write. failed is called for the first of several failures in a row.
func Save(ctx context.Context, wake <-chan struct{}, write func() error, failed func(error)) {
	failing := false
	for {
		goes := retry.Sleep(ctx, saveDelay)
		err := write()
		if err != nil && !failing {
			failed(err)
		}
		failing = err != nil
		if !goes || failing && !retry.Sleep(ctx, saveAgain) {
			return
		}
		select {
		case <-wake:
		case <-ctx.Done():
		}
	}
}
