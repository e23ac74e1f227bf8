package filewatch

import (
	"context"
	"log/slog"
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

// Logged is a report of Poll that logs: what failed with the error, and again when look
// succeeds again.
func Logged(log *slog.Logger, failed, again string, attrs ...any) func(error) {
	return func(err error) {
		if err == nil {
			log.Info(again, attrs...)
			return
		}
		log.With(attrs...).Warn(failed, "err", err)
	}
}
