package watch

import (
	"context"
	"time"
)

// Poll calls look at each interval until the context ends. It reports an error once, until
// look fails in another way, and nil when look succeeds again.
func Poll(ctx context.Context, interval time.Duration, look func() error, report func(error)) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	reported := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		err, text := look(), ""
		if err != nil {
			text = err.Error()
		}
		if text != reported {
			report(err)
		}
		reported = text
	}
}
