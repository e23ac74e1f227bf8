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
		clock, began := startClock(t, func() time.Duration { return 0 }), time.Now()
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
		stopped(lateBeat - beat) // a late beat is not a stop
		<-time.NewTimer(time.Second).C
		if took := clock.Since(now); took != time.Second {
			t.Errorf("after the stop: %v", took)
		}
	})
}

// TestClockLeavesWaitsForAProcessorOut: as much as programs waited, and nothing of before.
func TestClockLeavesWaitsForAProcessorOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waited := time.Hour
		clock, began := startClock(t, func() time.Duration { return waited }), time.Now()
		<-time.NewTimer(lateBeat - beat/2).C
		synctest.Wait()
		clock.mu.Lock()
		waited += beat / 4
		clock.mu.Unlock()
		<-time.NewTimer(time.Second).C
		if took, want := clock.Since(began), time.Second+lateBeat-beat/2-beat/4; took != want {
			t.Errorf("with a wait of %v: %v, want %v", beat/4, took, want)
		}
	})
}

func TestWaitsAreReadAsTheKernelWritesThem(t *testing.T) {
	if got := waitedIn([]byte("some avg10=63.03 avg60=70.23 avg300=69.74 total=16692\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n")); got != 16692*time.Microsecond {
		t.Errorf("programs waited %v", got)
	}
	if got := stolenIn([]byte("cpu  1 2 3 4 5 6 7 80 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\n")); got != 80*tick {
		t.Errorf("other machines had the processors for %v", got)
	}
	if waitedIn(nil) != 0 || stolenIn(nil) != 0 {
		t.Error("a kernel that does not tell waits")
	}
	if first, second := busySoFar(), busySoFar(); second < first {
		t.Errorf("it was %v and is %v", first, second)
	}
}
