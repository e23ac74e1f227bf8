package retry

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestAwait: a wait ends with the pause, with news, and with the context, whichever comes first.
func TestAwait(t *testing.T) {
	for name, c := range map[string]struct {
		pause, news, end time.Duration // when they come
		want             time.Duration
		lives            bool
	}{
		"pause":            {time.Second, 2 * time.Second, 3 * time.Second, time.Second, true},
		"news":             {2 * time.Second, time.Second, 3 * time.Second, time.Second, true},
		"news without end": {Forever, time.Hour, 2 * time.Hour, time.Hour, true},
		"context":          {Forever, time.Hour, time.Second, time.Second, false},
		"no pause":         {-time.Second, time.Hour, 2 * time.Hour, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), c.end)
				defer cancel()
				news := make(chan struct{})
				time.AfterFunc(c.news, func() { close(news) })
				start := time.Now()
				if lives := Await(ctx, c.pause, nil, news); lives != c.lives {
					t.Errorf("lives is %v", lives)
				}
				if took := time.Since(start); took != c.want {
					t.Errorf("it took %v, want %v", took, c.want)
				}
			})
		})
	}
}
