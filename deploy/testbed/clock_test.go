package testbed

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestClockLeavesStopsOut: one before the beginning does not count, of one during
// which something began the part after it.
func TestClockLeavesStopsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock, began := StartClock(t), time.Now()
		<-time.NewTimer(time.Minute).C
		if took := clock.Since(began); took != time.Minute {
			t.Errorf("without a stop: %v", took)
		}
		synctest.Wait()
		now := time.Now()
		stopped := func(took time.Duration) { // no beat came since then
			clock.mu.Lock()
			defer clock.mu.Unlock()
			clock.last = now.Add(-took)
		}
		stopped(5 * time.Second)
		if took := clock.Since(began); took != 55*time.Second+beat {
			t.Errorf("with a stop of 5 s: %v", took)
		}
		if took := clock.Since(now.Add(-time.Second)); took != 0 {
			t.Errorf("from the last second of the stop: %v", took)
		}
		if took := clock.Between(began, now.Add(-time.Second)); took != 55*time.Second+beat {
			t.Errorf("to the last second of the stop: %v", took)
		}
		stopped(lateBeat - beat) // a late beat is no stop
		<-time.NewTimer(time.Second).C
		if took := clock.Since(now); took != time.Second {
			t.Errorf("after the stop: %v", took)
		}
	})
}
