package hub

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// TestR10HubEndsWithABrokenStore: the embedded etcd fails for good, such as on a full disk, and what asked it never gets an
// answer. The hub ends all the same, and says why.
func TestR10HubEndsWithABrokenStore(t *testing.T) {
	never := make(chan struct{})
	defer close(never)
	stuck := func(context.Context) error { <-never; return nil }
	h := &assembly{
		core: map[string]func(context.Context) error{
			"store":  func(context.Context) error { return errors.New("no space left on device") },
			"config": stuck,
		},
		edge:  map[string]func(context.Context) error{"graphql": func(ctx context.Context) error { <-ctx.Done(); return nil }},
		ready: &readiness{draining: make(chan struct{})}, endWithin: 10 * time.Millisecond,
	}
	err := h.run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "store: no space left on device") ||
		!strings.Contains(err.Error(), "not all of the hub ended") {
		t.Errorf("it ended with %v", err)
	}
}
