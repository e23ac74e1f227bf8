package etcd

import (
	"testing"
	"time"

	"go.uber.org/zap"
)

// TestR65AnIdleStoreSeldomWakes: a single member needs no heartbeats, and its log
// of writes is what survives a crash; each tick and each batch wakes an idle hub.
func TestR65AnIdleStoreSeldomWakes(t *testing.T) {
	c := embeddedConfig(Options{DataDir: t.TempDir()}, zap.NewNop())
	tick := time.Duration(c.TickMs) * time.Millisecond
	if wakes := time.Second/tick + time.Second/c.BackendBatchInterval; wakes > 3 {
		t.Errorf("etcd's timers wake an idle hub %d times a second (a tick of %s, a batch of %s), want at most 3",
			wakes, tick, c.BackendBatchInterval)
	}
	if c.ElectionMs < 5*c.TickMs {
		t.Errorf("an election of %d ms is less than five ticks of %d ms, which etcd refuses", c.ElectionMs, c.TickMs)
	}
}
