package apply

import (
	"context"
	"fmt"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
)

// History returns what was done to an object, the newest step first.
func (e *Engine) History(ctx context.Context, key federation.ObjectKey) (config.ObjectHistory, error) {
	found, err := e.Log.History(ctx, key)
	if err != nil {
		return found, fmt.Errorf("reading the history of %s: %w", key, err)
	}
	return found, nil
}

// Records returns up to limit revisions below the revision before, newest
// first; before 0 starts at the newest.
func (e *Engine) Records(ctx context.Context, before int64, limit int) ([]config.Record, error) {
	return e.Log.Records(ctx, before, limit)
}
