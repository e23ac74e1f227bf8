package clientaddr

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
)

// TestR46ACrowdDoesNotFloodTheLog: 10,000 proxies connect at once. The log has some
// of them, later how many more there were, and meanwhile what another one refuses.
func TestR46ACrowdDoesNotFloodTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var written testbed.LogText
		logger := slog.New(slog.NewTextHandler(&written, nil))
		c := NewLimitedLog(logger)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); c.Run(ctx) }()
		for range 10_000 {
			c.Log(logger.With("cluster", "c1"), slog.LevelInfo, "proxy connected", slog.String("node", "a"))
		}
		c.Log(logger, slog.LevelWarn, "proxy rejected configuration", slog.String("node", "b"))
		synctest.Wait()
		if n := strings.Count(written.String(), "cluster=c1 node=a"); n != messageBurst {
			t.Errorf("%d lines at once, want %d", n, messageBurst)
		}
		if !strings.Contains(written.String(), `level=WARN msg="proxy rejected configuration" node=b`) {
			t.Error("the refusal is lost among those who connect")
		}
		time.Sleep(summaryPause + time.Second) //nolint:forbidigo // the bubble's time
		synctest.Wait()
		if !strings.Contains(written.String(), `level=INFO msg="proxy connected" suppressed=9950`) {
			t.Errorf("the rest is not counted: %s", written.String())
		}
		for range 100 {
			c.Log(logger, slog.LevelInfo, "proxy connected")
		}
		cancel()
		<-ended
		if !strings.Contains(written.String(), "suppressed=50\n") {
			t.Error("what was excluded last is not counted at the end")
		}
	})
}
