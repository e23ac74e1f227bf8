package watch

import (
	"context"
	"time"
)

// Poll calls look at each interval until the context ends. It reports what fails once, and
// again after it failed in another way or succeeded.
func Poll(ctx context.Context, interval time.Duration, look func() error, failed func(error)) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	reported := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		text := ""
		if err := look(); err != nil {
			if text = err.Error(); text != reported {
				failed(err)
			}
		}
		reported = text
	}
}
